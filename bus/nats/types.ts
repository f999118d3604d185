/** How a part of the driver ends: first its readers, then the connections are closed under all of them. */
export interface Closable {
  /** Takes no new readers, stops the ones it has, and resolves when no handler is running. Writes still pass: handlers in hand need them. */
  stopReaders(): Promise<void>;
}
