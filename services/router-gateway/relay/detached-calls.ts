import { isLastFrame } from '#bus/messages/frame.ts';
import type { Clock } from '#shared/clock.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import type { GatewayLimits } from '../limits.ts';
import type { CallReaders } from './call-readers.ts';

interface DetachedCall {
  callId: string;
  deadlineAtMs: number;
  /** The call has ended. */
  end(): void;
  /** This gateway stops, and the call goes on. */
  leave(): void;
}

interface Deps {
  readers: Pick<CallReaders, 'subscribe'>;
  deadlines: Deadlines;
  clock: Clock;
  limits: Pick<GatewayLimits, 'detachedCalls' | 'detachedSilenceMs' | 'deadlineGraceMs'>;
}

/**
 * Detached calls that go on after their client has left. Notices the end of each: by its last frame, or, since that may be lost, when its worker has sent
 * heartbeats and sends no more, or at its deadline. A call that waits in the queue has no heartbeats yet.
 */
export class DetachedCalls {
  readonly #deps: Deps;
  /** The functions that stop following. */
  readonly #followed = new Map<string, { stop(): void; leave(): void }>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Call it before the call's last reader is released. Beyond the limit the call counts as ended. */
  follow({ callId, deadlineAtMs, end, leave }: DetachedCall): void {
    const { clock, deadlines, limits, readers } = this.#deps;
    if (this.#followed.size >= limits.detachedCalls) {
      end();
      return;
    }
    const onEnd = () => {
      stop();
      end();
    };
    const deadline = deadlines.begin(Math.max(0, deadlineAtMs - clock.nowMs()) + limits.deadlineGraceMs, onEnd);
    const silence = { deadline: null as ReturnType<Deadlines['begin']> | null };
    const noteAlive = () => {
      if (silence.deadline === null) silence.deadline = deadlines.begin(limits.detachedSilenceMs, onEnd);
      else deadlines.restart(silence.deadline, limits.detachedSilenceMs);
    };
    // While disconnected, silence says nothing about the worker.
    const onLoss = () => {
      if (silence.deadline !== null) noteAlive();
    };
    const receive = (frame: Uint8Array) => {
      if (isLastFrame(frame)) onEnd();
      else noteAlive();
    };
    const subscription = readers.subscribe(callId, { frames: { receive }, onBeat: noteAlive, onLoss, onEnd: () => {} });
    const stop = () => {
      this.#followed.delete(callId);
      deadlines.stop(deadline);
      if (silence.deadline !== null) deadlines.stop(silence.deadline);
      subscription.release('over');
    };
    this.#followed.set(callId, { stop, leave });
  }

  stop(): void {
    for (const { stop, leave } of [...this.#followed.values()]) {
      stop();
      leave();
    }
  }
}
