/**
 * The promise's outcome, or what `late` returns or throws once `limitMs` have passed. The work behind the promise goes on, and its later rejection
 * is ignored.
 */
export function within<Value, Late>(limitMs: number, promise: Promise<Value>, late: () => Late): Promise<Value | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    }, limitMs);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
