import type { CallSignal } from '../../../services/router-worker/call-signal.ts';
import type { OpenedAdapter, PartHandler, ProviderCall } from '../../../services/router-worker/providers/provider.ts';
import { SwitchyardError } from '../../../shared/errors/switchyard-error.ts';
import { orAborted } from '../environment.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import { config, FILE_TEXT, hasFile, numberIn } from './router-setup.ts';

/** A piece of an answer: eight characters, with the number of the request that it answers. */
export const PIECE = /piece(\d{3})/g;
/** At four characters a token. */
export const TOKENS_PER_PIECE = 2;
const MAX_PIECES = 4;
const USAGE = { promptTokens: 9, cachedTokens: 0, reasoningTokens: 0 };

/** The providers behind all workers. An answer comes piece by piece; any piece may be the last that comes. */
export class SimulatedProviders {
  readonly #scheduler: Scheduler;
  /** Requests that arrived, by the number of the call. */
  readonly requests = new Map<number, number>();
  /** Requests that have their file, whose text was read for them. */
  withFile = 0;
  /** Calls that were sent without the text of their file. */
  readonly unread: number[] = [];
  isFaultFree = false;
  /** Requests that are answered. */
  #begun = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** As `openProviders`, for one worker. */
  of(process: Process) {
    const described = config.providers.map(({ slug, name = slug }) => {
      const dataPolicy = { trains: false, retains: false, isDistillable: true };
      return [slug, { slug, name, address: null, dataPolicy, reasoningFormat: null, open: () => this.#adapter(process, slug) }] as const;
    });
    return {
      configured: new Map(described),
      adapters: new Map(described.map(([slug, provider]) => [slug, provider.open()])),
      close: async () => {},
    };
  }

  #adapter(process: Process, slug: string): OpenedAdapter {
    return {
      slug,
      stream: (call, signal, onParts) => this.#stream({ process, slug }, call, signal, onParts),
      upstreamBody: () => ({}),
      close: async () => {},
    };
  }

  async #stream({ process, slug }: { process: Process; slug: string }, { request }: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void> {
    const number = numberIn(request.messages[0]?.content);
    const step = <Result>(what: string, execute: () => Result) =>
      orAborted(signal, this.#scheduler.park<Result>(process, `${slug} ${what} ${number}`, connectionLost, execute));
    const isRead = JSON.stringify(request.messages).includes(FILE_TEXT);
    const { pieces, text } = await step('gets call', () => this.#begin(number, isRead));
    for (let piece = 0; piece < pieces; piece += 1) {
      await step('writes for call', () => {});
      if (!onParts([{ type: 'text-delta', text }])) return;
    }
    await step('ends call', () => {});
    const usage = { ...USAGE, completionTokens: TOKENS_PER_PIECE * pieces };
    onParts([
      { type: 'usage', usage },
      { type: 'finish', reason: 'stop', nativeReason: 'stop' },
    ]);
  }

  /** @returns how many pieces the answer has, and their text */
  #begin(number: number, isRead: boolean): { pieces: number; text: string } {
    const { chance } = this.#scheduler;
    if (isRead) this.withFile += 1;
    else if (hasFile(number)) this.unread.push(number);
    this.requests.set(number, (this.requests.get(number) ?? 0) + 1);
    if (!this.isFaultFree && chance.oneIn(10)) throw connectionLost();
    this.#begun += 1;
    return { pieces: 1 + chance.below(MAX_PIECES), text: `piece${String(this.#begun).padStart(3, '0')}` };
  }
}

function connectionLost(): SwitchyardError {
  return new SwitchyardError('router.provider_unavailable', 'the upstream connection was lost');
}
