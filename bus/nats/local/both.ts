import type { Listening } from '../../bus.ts';

/** Two subscriptions of one reader. @param first the one whose broker confirms both: it was made last there, or alone */
export function both(first: Listening, second: Listening): Listening {
  return {
    ready: () => first.ready(),
    stop: async () => {
      await Promise.all([first.stop(), second.stop()]);
    },
  };
}
