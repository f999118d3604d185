/**
 * The promise's outcome, or what `late` returns or throws once `limitMs` have passed. The work behind the promise goes on, and its later rejection
 * is ignored. A process that was paused or starved reads its sockets once more before anything is late: timers come first in a tick of the event loop, and the
 * answer may have arrived meanwhile.
 * @param parts of the time, of which one that is late counts once: an answer that takes several ticks is not late because this process is
 */
export function within<Value, Late>(limitMs: number, promise: Promise<Value>, late: () => Late, parts = 1): Promise<Value | Late> {
  return new Promise((resolve, reject) => {
    let isSettled = false;
    const endLate = () => {
      if (isSettled) return;
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    };
    let timer: NodeJS.Timeout;
    const wait = (left: number) => {
      timer = setTimeout(() => (left === 1 ? setImmediate(endLate) : wait(left - 1)), limitMs / parts);
    };
    wait(parts);
    const settle = () => {
      isSettled = true;
      clearTimeout(timer);
    };
    promise.then(
      (value) => {
        settle();
        resolve(value);
      },
      (error) => {
        settle();
        reject(error);
      },
    );
  });
}
