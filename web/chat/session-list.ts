import type { AgentClient } from '#client/agent-client.ts';
import { Changes } from '../changes.ts';

interface Listed {
  id: string;
  title: string | null;
  createdAt: string;
}

const PAGE = 30;

/** The newest conversations, a page at a time. */
export class SessionList {
  readonly changes = new Changes();
  sessions: Listed[] = [];
  /** Null: there are no more. */
  nextCursor: string | null = null;
  readonly #client: AgentClient;

  constructor(client: AgentClient) {
    this.#client = client;
  }

  load(): Promise<void> {
    return this.#read(undefined);
  }

  loadMore(): Promise<void> {
    return this.nextCursor === null ? Promise.resolve() : this.#read(this.nextCursor);
  }

  async #read(cursor: string | undefined): Promise<void> {
    try {
      const { items, next_cursor: nextCursor } = await this.#client.sessions.list({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
      // Sessions of runs are no conversations.
      const found = items.flatMap(({ id, title, created_at: createdAt, ephemeral }) => (ephemeral ? [] : [{ id, title, createdAt }]));
      this.sessions = cursor === undefined ? found : [...this.sessions, ...found];
      this.nextCursor = nextCursor;
    } catch {
      // The list stays as it was: the conversation itself says what is wrong.
    }
    this.changes.emit();
  }
}
