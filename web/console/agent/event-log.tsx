import { useEffect, useState } from 'preact/hooks';
import { useChanges } from '../../use-changes.ts';
import { Problem } from '../problem.tsx';
import { json, timeText } from '../texts.ts';
import { VirtualList } from '../virtual-list.tsx';
import { moderationOf, summaryOf } from './event-summary.ts';
import { follow } from './followed-log.ts';
import type { WithClient } from './with-client.ts';

interface EventLogProps extends WithClient {
  sessionId: string;
  /** Offset of the first event. */
  from: number;
}

/** Events from an offset on, in order, as they come. One of them whole. */
export function EventLog({ client, sessionId, from }: EventLogProps) {
  const [log] = useState(() => follow(client, sessionId, from));
  const [chosen, setChosen] = useState<number | null>(null);
  useChanges(log.list.changes);
  useEffect(() => () => log.stop(), [log]);
  const event = log.list.items.find(({ offset }) => offset === chosen);
  return (
    <>
      {log.failure !== null && <Problem error={log.failure} />}
      <VirtualList
        label="Events"
        list={log.list}
        keyOf={({ offset }) => String(offset)}
        empty="There are no events from this offset on."
        row={(item) => (
          <button type="button" class="row" aria-pressed={item.offset === chosen} onClick={() => setChosen(item.offset === chosen ? null : item.offset)}>
            <span class="number">{item.offset}</span>
            <span class="badge">{item.kind}</span>
            {moderationOf(item) !== '' && <span class="badge">{moderationOf(item)}</span>}
            <span class="wide">{summaryOf(item)}</span>
            <time dateTime={item.created_at}>{timeText(item.created_at)}</time>
          </button>
        )}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by key */}
      {event !== undefined && <pre tabIndex={0}>{json(event)}</pre>}
    </>
  );
}
