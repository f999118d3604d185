import type { CommandReply, SessionCommand } from '../../bus/messages/session.ts';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '../../shared/contracts/agent/session.ts';
import type { Simulation } from './simulation.ts';

/** The mode of a session from behind an offset on. */
interface ModeChange {
  behind: number;
  mode: SessionRecord['mode'];
}

/** No turn begins in manual mode, whatever it has waited for: each `acknowledged` of a turn stands where the session is in auto mode. */
export function checkModes({ watch, model, counts }: Simulation, logs: ReadonlyMap<string, readonly ConversationEvent[]>): void {
  const changes = new Map<string, ModeChange[]>();
  const applied = new Set<string>();
  for (const { command } of watch.history) {
    if (command === null || !setsMode(command)) continue;
    const name = `${command.sessionId} ${command.commandId}`;
    // A second copy changes nothing.
    if (applied.has(name)) continue;
    applied.add(name);
    const answer = model.tables.seen.get(name)?.['answer'] as string | null | undefined;
    const { ok, value } = JSON.parse(answer ?? '{"ok":false}') as CommandReply & { value?: { session?: SessionRecord } };
    if (!ok || value?.session === undefined) continue;
    const { mode, last_offset: behind } = value.session;
    changes.set(command.sessionId, [...(changes.get(command.sessionId) ?? []), { behind, mode }]);
  }
  for (const [session, log] of logs) {
    const ofSession = changes.get(session) ?? [];
    if (ofSession.some(({ mode }) => mode === 'manual')) counts.takenOver += 1;
    for (const event of log) {
      // No tool of the simulation asks for a mode, and runs go on in any.
      if (event.kind !== 'status' || event.status !== 'acknowledged' || event.trace_id.startsWith('f')) continue;
      // Of several at one offset the last one of the log counts.
      const before = ofSession.filter(({ behind }) => behind < event.offset);
      const latest = Math.max(...before.map(({ behind }) => behind));
      if (before.findLast(({ behind }) => behind === latest)?.mode === 'manual')
        watch.breach('manual mode', `a turn begins at offset ${event.offset} of ${session}, which is in manual mode from offset ${latest + 1} on`);
    }
  }
}

function setsMode({ type }: SessionCommand): boolean {
  return type === 'session.create' || type === 'session.patch';
}
