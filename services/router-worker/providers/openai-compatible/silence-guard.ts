import type { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { ProviderTimeouts } from '../provider.ts';

/** Ends a request that stays silent for too long, or whose caller has left. One deadline per request, pushed on by every read. */
export interface SilenceGuard {
  /** What is to be aborted now, in the place of any other. */
  watch(request: Abortable): void;
  /** @throws the reason why the request is over already: it is not to be made again */
  throwIfOver(): void;
  /** Bytes came. Before the first content they change nothing: an upstream that only says that it is alive is still late. */
  noteReceived(): void;
  /** The first content part came: from here on only the silence between two reads counts. */
  contentCame(): void;
  /** Whatever else comes, it may take this long and no longer. */
  onlyFor(limitMs: number): void;
  stop(): void;
}

interface Abortable {
  /** @param reason the caller's, or `router.provider_unavailable` when the upstream is silent */
  abort(reason: unknown): void;
}

export function guardSilence(name: string, { firstTokenMs, idleMs }: ProviderTimeouts, caller: CallSignal, deadlines: Deadlines): SilenceGuard {
  let watched: Abortable | null = null;
  let over: { reason: unknown } | null = null;
  const end = (reason: unknown) => {
    over ??= { reason };
    watched?.abort(over.reason);
  };
  let limitMs = firstTokenMs;
  const silent = () => {
    end(new SwitchyardError('router.provider_unavailable', `${name} was silent for ${limitMs} ms`, { details: { reason: 'timeout' } }));
  };
  let phase: 'waiting' | 'streaming' | 'ending' = 'waiting';
  const deadline = deadlines.begin(limitMs, silent);
  const onAbort = () => end(caller.reason);
  if (caller.aborted) onAbort();
  else caller.addEventListener('abort', onAbort);
  return {
    watch(request) {
      watched = request;
    },
    throwIfOver() {
      if (over !== null) throw over.reason;
    },
    noteReceived() {
      if (phase === 'streaming') deadlines.restart(deadline, limitMs);
    },
    contentCame() {
      if (phase !== 'waiting') return;
      phase = 'streaming';
      limitMs = idleMs;
      deadlines.restart(deadline, limitMs);
    },
    onlyFor(restMs) {
      if (phase === 'ending') return;
      phase = 'ending';
      limitMs = restMs;
      deadlines.restart(deadline, limitMs);
    },
    stop() {
      deadlines.stop(deadline);
      caller.removeEventListener('abort', onAbort);
    },
  };
}
