import { useEffect, useState } from 'preact/hooks';
import { type Page, PagedList } from './paged-list.ts';

/** A list for as long as its component is shown. @param everyMs refreshes it while the page is visible; null: never */
export function usePagedList<Item>(
  keyOf: (item: Item) => string,
  load: (cursor: string | undefined) => Promise<Page<Item>>,
  everyMs: number | null = null,
): PagedList<Item> {
  const [list] = useState(() => new PagedList(keyOf, load));
  useEffect(() => {
    if (everyMs === null) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void list.refresh();
    }, everyMs);
    return () => clearInterval(timer);
  }, [list]);
  return list;
}

/** The query of a page. */
export function pageQuery(cursor: string | undefined, limit = 100): { limit: number; cursor?: string } {
  return cursor === undefined ? { limit } : { limit, cursor };
}
