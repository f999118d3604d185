/** A message that is not in the log yet. Its key makes its effect happen once, however often it is sent. */
export interface Unsent {
  key: string;
  text: string;
  /** Null: its session is not made yet. */
  sessionId: string | null;
  /** `accepted`: durable, without an offset so far. */
  state: 'sending' | 'accepted' | 'refused';
  /** Why it was refused, with the code. */
  problem: string | null;
  /** Of the event, once it is known. */
  eventId: string | null;
  /** Offset of the last event that was known when it was sent: its own is higher. */
  after: number;
}

type TabStorage = Pick<Storage, 'getItem' | 'setItem'>;

const STORED = 'switchyard.unsent';
const MAX_UNSENT = 100;

/** The unsent messages of a tab: they outlast a reload and a login, and are sent again under their keys. */
export class Outbox {
  readonly #storage: TabStorage;
  messages: Unsent[];

  constructor(storage: TabStorage) {
    this.#storage = storage;
    this.messages = stored(storage);
  }

  get isFull(): boolean {
    return this.messages.length >= MAX_UNSENT;
  }

  of(sessionId: string | null): Unsent[] {
    return this.messages.filter((message) => message.sessionId === sessionId);
  }

  add(message: Pick<Unsent, 'key' | 'text' | 'sessionId' | 'after'>): Unsent {
    const added: Unsent = { ...message, state: 'sending', problem: null, eventId: null };
    this.messages.push(added);
    this.save();
    return added;
  }

  remove(key: string): void {
    this.messages = this.messages.filter((message) => message.key !== key);
    this.save();
  }

  /** Removes what has come in the log. @param event a message of the customer */
  onEvent(sessionId: string, event: { id?: string | undefined; offset: number; text: string }): void {
    const ofSession = this.of(sessionId);
    const found =
      ofSession.find(({ eventId }) => eventId !== null && eventId === event.id) ??
      // Its answer is still on the way, or said only that it is durable.
      ofSession.find(({ eventId, state, text, after }) => eventId === null && state !== 'refused' && text === event.text && event.offset > after);
    if (found !== undefined) this.remove(found.key);
  }

  save(): void {
    try {
      this.#storage.setItem(STORED, JSON.stringify(this.messages));
    } catch {
      // Too large for the browser's storage: then it is kept until the page is left.
    }
  }
}

function stored(storage: TabStorage): Unsent[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(STORED) ?? '[]');
    return Array.isArray(found) ? found.filter(isUnsent).slice(0, MAX_UNSENT) : [];
  } catch {
    return [];
  }
}

function isUnsent(value: unknown): value is Unsent {
  const { key, text, sessionId, state } = Object(value);
  return typeof key === 'string' && typeof text === 'string' && (sessionId === null || typeof sessionId === 'string') && typeof state === 'string';
}
