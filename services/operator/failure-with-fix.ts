/** A failure whose next step is known. `failure` has the code, `message` may say more than its message does. */
export class FailureWithFix extends Error {
  readonly failure: unknown;
  /** What to do next, as in the findings of `doctor`. */
  readonly fix: string;

  constructor(failure: unknown, fix: string, message = failure instanceof Error ? failure.message : String(failure)) {
    super(message, { cause: failure });
    this.failure = failure;
    this.fix = fix;
  }
}

/** @throws what `run` throws, with the fix; one that has a fix already stays as it is */
export async function withFix<T>(fix: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof FailureWithFix ? error : new FailureWithFix(error, fix);
  }
}
