import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Subscription } from './bus.ts';
import { isToken } from './subjects.ts';

/** @throws `bus.invalid_subject` for an id that is not one token: the id is part of the subject on which the broker reports no responders */
export function assertDispatchable(messageId: string): void {
  if (!isToken(messageId)) throw new SwitchyardError('bus.invalid_subject', `'${messageId}' can't be dispatched: it is not one token of a subject`);
}

/** Subscribers to what became of dispatches: those that reached no consumer, or those that one has stored. */
export class DispatchReports {
  readonly #handlers = new Set<(messageId: string) => void>();

  subscribe(handler: (messageId: string) => void): Subscription {
    // A wrapper per subscription: the same handler may be subscribed twice.
    const one = (messageId: string) => handler(messageId);
    this.#handlers.add(one);
    return {
      stop: async () => {
        this.#handlers.delete(one);
      },
    };
  }

  notify(messageId: string): void {
    for (const handler of this.#handlers) handler(messageId);
  }
}
