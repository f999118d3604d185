/** How a component of the driver closes: first its readers; then the connections, for all components. */
export interface Closable {
  /** Stops all readers and refuses new ones; resolves when no handler is running. Writes still pass, since running handlers need them. */
  stopReaders(): Promise<void>;
}
