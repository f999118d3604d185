import { useChanges } from '../use-changes.ts';
import type { SessionList } from './session-list.ts';
import { timeText } from './time-text.ts';

interface SessionsProps {
  list: SessionList;
  /** Null: a conversation that has not begun. */
  current: string | null;
  /** On a narrow screen; a wide one always shows them. */
  isOpen: boolean;
}

export function Sessions({ list, current, isOpen }: SessionsProps) {
  useChanges(list.changes);
  return (
    <nav id="sessions" class={isOpen ? 'sessions open' : 'sessions'} aria-label="Conversations">
      <a class="button" href="/chat">
        New conversation
      </a>
      <ul>
        {list.sessions.map(({ id, title, createdAt }) => (
          <li key={id}>
            <a href={`/chat?session=${encodeURIComponent(id)}`} aria-current={id === current ? 'page' : undefined}>
              <span class="title">{title === null || title === '' ? 'Without a title' : title}</span>
              <time dateTime={createdAt}>{timeText(createdAt)}</time>
            </a>
          </li>
        ))}
      </ul>
      {list.nextCursor === null ? null : (
        <button type="button" class="quiet" onClick={() => void list.loadMore()}>
          More
        </button>
      )}
      <a href="/console">Console</a>
    </nav>
  );
}
