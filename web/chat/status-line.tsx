import type { ConnectionItem } from '#client/follow-item.ts';
import type { Activity } from './conversation.ts';

const LABELS: Readonly<Record<string, string>> = { acknowledged: 'Received', processing: 'Working', typing: 'Writing' };

interface StatusLineProps {
  activity: Activity | null;
  connection: ConnectionItem | null;
}

/** What the agent does, and what is wrong with the connection. */
export function StatusLine({ activity, connection }: StatusLineProps) {
  const problem = connectionText(connection);
  const text = problem ?? activityText(activity);
  return (
    <p class={problem === null ? 'status' : 'status lost'} role="status" data-status={activity?.status ?? 'ready'} data-transport={connection?.transport}>
      {problem === null && activity !== null ? <span class="dots" aria-hidden="true" /> : null}
      {text}
    </p>
  );
}

function activityText(activity: Activity | null): string {
  if (activity === null) return '';
  const label = LABELS[activity.status] ?? activity.status;
  return activity.stage === null ? label : `${label}: ${activity.stage}`;
}

function connectionText(connection: ConnectionItem | null): string | null {
  if (connection?.state !== 'waiting') return null;
  const reason = connection.error === null ? '' : ` (${connection.error.code})`;
  return `Connection lost${reason}. Connecting again; nothing is lost.`;
}
