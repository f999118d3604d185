/** How a component closes: first all readers stop; then the connections close. */
export interface Closable {
  /** Stops readers, refuses new ones; resolves when no handler is running. Writes still pass: running handlers need them. */
  stopReaders(): Promise<void>;
}
