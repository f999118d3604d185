/** An error in place of a chunk. */
export class ErrorEvent extends Error {
  override readonly name = 'ErrorEvent';
  readonly error: unknown;

  constructor(error: unknown) {
    super('the stream holds an error');
    this.error = error;
  }
}
