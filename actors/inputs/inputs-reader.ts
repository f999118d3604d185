import { type CommandOf, checkedEventOf, type SessionCommand } from '#bus/messages/session.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { SessionState } from '../runtime/apply/session-state.ts';
import type { TransitionInputs } from '../runtime/apply/transition-inputs.ts';
import type { SessionStore } from '../store/port/session-store.ts';
import type { ActorInputs } from './actor-inputs.ts';
import { type RunFactsReader, readRunFacts } from './run-facts.ts';
import { readTurnFacts, type TurnFactsDeps } from './turn-facts.ts';

interface ReaderDeps {
  runFacts: RunFactsReader;
  sessions: Pick<SessionStore, 'event' | 'cut'>;
  turnFacts: Omit<TurnFactsDeps, 'log' | 'lists'>;
  settings: Pick<ActorInputs, 'coalesceMs' | 'turnTimeoutMs' | 'eventWebhooks'>;
  /** Null when the bundle has no greeting. */
  greetingOf(command: CommandOf<'session.create'>): Promise<string | null>;
  log: Log;
}

type Read = Omit<ActorInputs, keyof TransitionInputs>;

/** Reads what the transitions of a batch need beside states and commands. Throws transient errors, to be read again. */
export function inputsReader(deps: ReaderDeps): (commands: readonly SessionCommand[], states: ReadonlyMap<string, SessionState | null>) => Promise<Read> {
  const { coalesceMs, turnTimeoutMs, eventWebhooks } = deps.settings;
  const settings = { coalesceMs, turnTimeoutMs, ...(eventWebhooks && { eventWebhooks }) };
  return async (commands, states) => {
    const greetings = new Map<string, string | null>();
    for (const command of commands) {
      if (command.type !== 'session.create' || greetings.has(command.sessionId)) continue;
      greetings.set(command.sessionId, await greetingOf(command, deps));
    }
    const [facts, engine, stored] = await Promise.all([
      readRunFacts(deps.runFacts, commands, states),
      readTurnFacts({ lists: (hashes) => deps.runFacts.lists(hashes), log: deps.log, ...deps.turnFacts }, commands, states),
      storedFor(commands, deps.sessions),
    ]);
    return { greetingOf: (sessionId) => greetings.get(sessionId) ?? null, ...settings, ...facts, ...(stored && { stored }), ...(engine && { engine }) };
  };
}

/** Null: no command changes stored events. One that does is alone in its batch. */
async function storedFor(commands: readonly SessionCommand[], sessions: ReaderDeps['sessions']): Promise<ActorInputs['stored'] | null> {
  for (const command of commands) {
    if (command.type === 'event.patch') return { event: await sessions.event(command.sessionId, command.eventId), cut: null };
    const checked = checkedEventOf(command);
    if (checked !== null) return { event: await sessions.event(command.sessionId, checked), cut: null };
    if (command.type === 'events.delete') return { event: null, cut: await sessions.cut(command.sessionId, command.minOffset) };
  }
  return null;
}

/** An unreadable bundle costs the session its greeting only. */
async function greetingOf(command: CommandOf<'session.create'>, { greetingOf: read, log }: ReaderDeps): Promise<string | null> {
  try {
    return await read(command);
  } catch (error) {
    if (isTransientError(error)) throw error;
    log.error({ err: error, bundle: command.bundleHash }, 'a configuration could not be read');
    return null;
  }
}
