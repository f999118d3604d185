import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useChanges } from '../use-changes.ts';
import type { PagedList } from './paged-list.ts';
import { Problem } from './problem.tsx';

/** All rows have it, so that the place of each is known without measuring. On narrow screens they have several lines; console.css has the same width. */
const ROW_PX = 44;
const NARROW_ROW_PX = 88;
const NARROW = '(max-width: 640px)';
/** Rows beyond the visible ones, on either side. */
const OVERSCAN = 8;

interface VirtualListProps<Item> {
  label: string;
  list: PagedList<Item>;
  keyOf(item: Item): string;
  row(item: Item): ComponentChildren;
  /** What stands in place of the rows when there are none. */
  empty: string;
  narrowRowPx?: number;
}

/** A list of any length, of which the visible rows are in the document. The next page is loaded before its end is reached. */
export function VirtualList<Item>({ label, list, keyOf, row, empty, narrowRowPx = NARROW_ROW_PX }: VirtualListProps<Item>) {
  const rowPx = matchMedia(NARROW).matches ? narrowRowPx : ROW_PX;
  useChanges(list.changes);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useEffect(() => {
    if (list.items.length === 0) void list.more();
    const element = box.current;
    if (element === null) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [list]);
  const { items } = list;
  const first = Math.max(0, Math.floor(view.top / rowPx) - OVERSCAN);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowPx) + OVERSCAN);
  useEffect(() => {
    if (last >= items.length && items.length > 0) void list.more();
  }, [last, items.length]);
  return (
    <div class="list-box">
      {list.failure !== null && <Problem error={list.failure} />}
      <section
        ref={box}
        class="list"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by key
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop: top, clientHeight: height } }) => setView({ top, height })}
      >
        {items.length === 0 ? (
          <p class="faint pad">{list.failure !== null ? '' : list.hasMore ? 'Loading…' : empty}</p>
        ) : (
          <ul style={{ height: `${items.length * rowPx}px` }}>
            {items.slice(first, last).map((item, index) => (
              <li
                key={keyOf(item)}
                aria-posinset={first + index + 1}
                aria-setsize={list.hasMore ? -1 : items.length}
                style={{ top: `${(first + index) * rowPx}px`, height: `${rowPx}px` }}
              >
                {row(item)}
              </li>
            ))}
          </ul>
        )}
      </section>
    </div>
  );
}
