/** The promise's own outcome, or a rejection with `late()` when that takes longer. The work behind the promise goes on either way. */
export function within<Value>(timeoutMs: number, promise: Promise<Value>, late: () => Error): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), timeoutMs);
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
