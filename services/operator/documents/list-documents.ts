import { routerRequest } from '../router-api.ts';
import type { Target } from '../targets.ts';

interface Listed {
  id: string;
  /** How many. */
  versions: number;
  newest: { version: number; published_at: string };
}

/** All documents of a kind that are published, by id. @throws SwitchyardError with the platform's message */
export async function listDocuments(kind: string, target: Target): Promise<Listed[]> {
  const found: Listed[] = [];
  for (let cursor: string | null = null; ; ) {
    const path: string = `/platform/${kind}${cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`}`;
    const { body } = await routerRequest(target, 'GET', path);
    const page = Object(body) as { items: Listed[]; next_cursor: string | null };
    found.push(...page.items);
    if (page.next_cursor === null) return found;
    cursor = page.next_cursor;
  }
}
