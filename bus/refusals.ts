import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Subscription } from './bus.ts';
import { isToken } from './subjects.ts';

/** @throws `bus.invalid_subject` for an id that no offer can carry: it stands in the subject at which an offer is refused */
export function assertDispatchable(messageId: string): void {
  if (!isToken(messageId)) throw new SwitchyardError('bus.invalid_subject', `'${messageId}' can't be offered: it is no token of a subject`);
}

/** Who wants to hear of offers that came to nobody. */
export class Refusals {
  readonly #handlers = new Set<(messageId: string) => void>();

  subscribe(handler: (messageId: string) => void): Subscription {
    // One of its own for each: the same handler may be given twice.
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
