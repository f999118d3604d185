import type { Bus } from '#bus/bus.ts';

/** The same bus, counting subscriptions. */
export function countedBus(inner: Bus): { bus: Bus; listening(pattern: string): number } {
  const counts = new Map<string, number>();
  const count = (pattern: string, by: number) => counts.set(pattern, (counts.get(pattern) ?? 0) + by);
  const bus: Bus = {
    ...inner,
    isReady: () => inner.isReady(),
    flush: () => inner.flush(),
    close: () => inner.close(),
    notices: {
      publish: (subject, body) => inner.notices.publish(subject, body),
      subscribe: (pattern, handler) => {
        count(pattern, 1);
        const subscription = inner.notices.subscribe(pattern, handler);
        return {
          ready: () => subscription.ready(),
          stop: () => {
            count(pattern, -1);
            return subscription.stop();
          },
        };
      },
    },
  };
  return { bus, listening: (pattern) => counts.get(pattern) ?? 0 };
}
