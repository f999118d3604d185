import { TimeoutError } from '@nats-io/transport-node';

export interface Overlapping<Result> {
  /** The first answer. Rejects with the first error that is no timeout, and with `TimeoutError` when the time is over. */
  answer: Promise<Result>;
  /** Sends nothing more. The answer may stay pending. */
  end(): void;
}

/**
 * Sends an idempotent request again every `everyMs` while none has been answered: a lost server never answers, a slow one does in the end.
 * @param forMs in all
 * @param most requests
 */
export function overlapping<Result>(request: () => Promise<Result>, everyMs: number, forMs: number, most = Number.POSITIVE_INFINITY): Overlapping<Result> {
  let end = () => {};
  const answer = new Promise<Result>((resolve, reject) => {
    let sent = 0;
    const send = () => {
      sent += 1;
      if (sent > most) return clearInterval(again);
      request().then(
        (result) => {
          end();
          resolve(result);
        },
        (error: unknown) => {
          if (!(error instanceof TimeoutError)) fail(error);
        },
      );
    };
    const fail = (error: unknown) => {
      end();
      reject(error);
    };
    const again = setInterval(send, everyMs);
    const over = setTimeout(() => fail(new TimeoutError()), forMs);
    end = () => {
      clearInterval(again);
      clearTimeout(over);
    };
    send();
  });
  return { answer, end };
}
