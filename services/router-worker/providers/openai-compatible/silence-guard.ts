import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ProviderTimeouts } from '../provider.ts';

/** Aborts a request that stays silent for too long. One timer per request, pushed on by every read. */
export interface SilenceGuard {
  /** Aborts with the caller's signal, or with `router.provider_unavailable` when the upstream is silent. */
  signal: AbortSignal;
  /** Bytes came. Before the first content they change nothing: an upstream that only says that it is alive is still late. */
  heard(): void;
  /** The first content part came: from here on only the silence between two reads counts. */
  contentCame(): void;
  /** Whatever else comes, it may take this long and no longer. */
  onlyFor(limitMs: number): void;
  stop(): void;
}

export function guardSilence(name: string, { firstTokenMs, idleMs }: ProviderTimeouts, caller: AbortSignal): SilenceGuard {
  const controller = new AbortController();
  const silent = (limitMs: number) => {
    controller.abort(new SwitchyardError('router.provider_unavailable', `${name} was silent for ${limitMs} ms`, { details: { reason: 'timeout' } }));
  };
  let phase: 'waiting' | 'streaming' | 'ending' = 'waiting';
  let timer = setTimeout(silent, firstTokenMs, firstTokenMs);
  const onAbort = () => controller.abort(caller.reason);
  if (caller.aborted) onAbort();
  else caller.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    heard() {
      if (phase === 'streaming') timer.refresh();
    },
    contentCame() {
      if (phase !== 'waiting') return;
      phase = 'streaming';
      clearTimeout(timer);
      timer = setTimeout(silent, idleMs, idleMs);
    },
    onlyFor(limitMs) {
      if (phase === 'ending') return;
      phase = 'ending';
      clearTimeout(timer);
      timer = setTimeout(silent, limitMs, limitMs);
    },
    stop() {
      clearTimeout(timer);
      caller.removeEventListener('abort', onAbort);
    },
  };
}
