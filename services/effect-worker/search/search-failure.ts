/** Why a search has no documents: its turn replies without. */
export class SearchFailure extends Error {
  /** `refused`: the source gave an answer that can't be used. */
  readonly reason: 'timeout' | 'unreachable' | 'auth_failed' | 'refused';

  /** @param message without texts of the source or of the conversation */
  constructor(reason: SearchFailure['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SearchFailure';
    this.reason = reason;
  }
}
