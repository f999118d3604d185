import type { Author, Entry } from './entries.ts';
import { memo } from './memo.ts';
import { MessageText } from './message-text.tsx';
import { timeText } from './time-text.ts';
import { ToolCalls } from './tool-calls.tsx';

const NAMES: Readonly<Record<Author, string>> = { customer: 'You', agent: 'Agent', person: 'Human agent', system: 'System' };

interface EntryViewProps {
  entry: Entry;
}

/** One event of the log. Entries do not change, so each is rendered once. */
export const EntryView = memo(function EntryView({ entry }: EntryViewProps) {
  switch (entry.type) {
    case 'message': {
      const name = entry.name ?? NAMES[entry.author];
      return (
        <li class={`message ${entry.author}${entry.isPreamble ? ' preamble' : ''}`} data-offset={entry.offset}>
          <p class="by">
            <b>{name}</b> {entry.isPreamble ? <span class="tag">meanwhile</span> : null} <time dateTime={entry.at}>{timeText(entry.at)}</time>
          </p>
          <MessageText text={entry.text} isOpen={false} />
        </li>
      );
    }
    case 'tools':
      return (
        <li class="tools" data-offset={entry.offset}>
          <ToolCalls calls={entry.calls} />
        </li>
      );
    case 'error':
      return (
        <li class="note error" data-offset={entry.offset}>
          The agent failed{entry.detail === '' ? '.' : ': '}
          {entry.detail === '' ? null : <code>{entry.detail}</code>}
        </li>
      );
    case 'cancelled':
      return (
        <li class="note" data-offset={entry.offset}>
          The reply was cancelled.
        </li>
      );
  }
});
