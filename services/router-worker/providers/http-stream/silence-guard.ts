import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { ProviderTimeouts } from '../provider.ts';

interface Abortable {
  /** @param reason the caller's, or `router.provider_unavailable` on silence */
  abort(reason: unknown): void;
}

/** Aborts a request on upstream silence or on the caller's abort. One deadline per request, restarted by reads. */
export class SilenceGuard {
  readonly #name: string;
  readonly #caller: CallSignal;
  readonly #deadlines: Deadlines;
  readonly #deadline: Deadline;
  readonly #idleMs: number;
  #watched: Abortable | null = null;
  #over: { reason: unknown } | null = null;
  #limitMs: number;
  #phase: 'waiting' | 'streaming' | 'ending' = 'waiting';
  readonly #onAbort = () => this.#end(this.#caller.reason);

  constructor(name: string, { firstTokenMs, idleMs }: ProviderTimeouts, caller: CallSignal, deadlines: Deadlines) {
    this.#name = name;
    this.#caller = caller;
    this.#deadlines = deadlines;
    this.#idleMs = idleMs;
    this.#limitMs = firstTokenMs;
    this.#deadline = deadlines.begin(firstTokenMs, () => this.#onSilence());
    if (caller.aborted) this.#onAbort();
    else caller.addEventListener('abort', this.#onAbort);
  }

  /** Replaces the request to abort. */
  watch(request: Abortable): void {
    this.#watched = request;
  }

  /** @throws the reason of the abort, so that no retry is sent */
  throwIfOver(): void {
    if (this.#over !== null) throw this.#over.reason;
  }

  /** Bytes came. Ignored before the first content, or keep-alive comments would hide a late upstream. */
  noteReceived(): void {
    if (this.#phase === 'streaming') this.#deadlines.restart(this.#deadline, this.#limitMs);
  }

  /** The first content came: from now on the idle limit counts. */
  contentCame(): void {
    if (this.#phase === 'waiting') this.#enter('streaming', this.#idleMs);
  }

  /** Fixes the remaining time, whatever else comes. */
  onlyFor(limitMs: number): void {
    if (this.#phase !== 'ending') this.#enter('ending', limitMs);
  }

  stop(): void {
    this.#deadlines.stop(this.#deadline);
    this.#caller.removeEventListener('abort', this.#onAbort);
  }

  #enter(phase: 'streaming' | 'ending', limitMs: number): void {
    this.#phase = phase;
    this.#limitMs = limitMs;
    this.#deadlines.restart(this.#deadline, limitMs);
  }

  #onSilence(): void {
    this.#end(new SwitchyardError('router.provider_unavailable', `${this.#name} was silent for ${this.#limitMs} ms`, { details: { reason: 'timeout' } }));
  }

  #end(reason: unknown): void {
    this.#over ??= { reason };
    this.#watched?.abort(this.#over.reason);
  }
}
