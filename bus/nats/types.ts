/** First readers stop; then the connections close, for all components. */
export interface Closable {
  /** Stops readers, refuses new ones; resolves when no handler is running. Writes still pass: running handlers need them. */
  stopReaders(): Promise<void>;
}
