import type { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { ProviderTimeouts } from '../provider.ts';

/** Aborts a request on upstream silence or on the caller's abort. One deadline per request, restarted by reads. */
export interface SilenceGuard {
  /** Replaces the request to abort. */
  watch(request: Abortable): void;
  /** @throws the reason of the abort, so that no retry is sent */
  throwIfOver(): void;
  /** Bytes came. Ignored before the first content, or keep-alive comments would hide a late upstream. */
  noteReceived(): void;
  /** The first content came: from now on the idle limit counts. */
  contentCame(): void;
  /** Fixes the remaining time, whatever else comes. */
  onlyFor(limitMs: number): void;
  stop(): void;
}

interface Abortable {
  /** @param reason the caller's, or `router.provider_unavailable` on silence */
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
