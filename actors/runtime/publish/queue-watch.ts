import type { Bus, Subscription } from '#bus/bus.ts';
import { pauseFor } from '#bus/pause.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EffectStore } from '../../store/port/effect-store.ts';
import type { Outbox } from './outbox.ts';

/** After an error of the store. In a long outage the host drops its partitions anyway. */
const RETRY_MS = 1_000;

interface QueueWatchDeps {
  bus: Pick<Bus, 'work'>;
  effects: Pick<EffectStore, 'open'>;
  outbox: Pick<Outbox, 'publishAgain'>;
  /** Owned by this host. */
  partitions(): readonly number[];
  log: Log;
}

/** Publishes this host's open effects again when the work queue was lost and recreated. */
export function watchQueue({ bus, effects, outbox, partitions, log }: QueueWatchDeps): Subscription {
  const stopped = new AbortController();
  let restarts = 0;
  let running: Promise<void> | null = null;
  const publishAgain = async () => {
    for (let done = 0; done < restarts && !stopped.signal.aborted; ) {
      const upTo = restarts;
      try {
        const count = await outbox.publishAgain(effects, partitions());
        log.warn({ count }, 'the work queue was lost: open effects are published again');
        done = upTo;
      } catch (error) {
        log.warn({ err: error }, 'the open effects could not be read, to publish them again; they are read once more');
        await pauseFor(RETRY_MS, stopped.signal);
      }
    }
    restarts = 0;
  };
  const subscription = bus.work.onRestart(() => {
    restarts += 1;
    running ??= publishAgain().finally(() => {
      running = null;
    });
  });
  return {
    async stop() {
      stopped.abort();
      await subscription.stop();
      await running;
    },
  };
}
