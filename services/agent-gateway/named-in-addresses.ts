import { isSharedKey } from '#shared/contracts/agent/variable.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Components } from './components.ts';
import { type DeclaredVariables, noSuchVariable } from './customers/declared-variables.ts';
import { type Journeys, noSuchJourney } from './journeys/journeys.ts';
import { noSuchSession } from './plugins/error-reply.ts';
import type { Named } from './plugins/unknown-first.ts';
import { isCustomerId, noSuchCustomer } from './routes/customer-id.ts';
import { isDeadLetterId, noSuchDeadLetter } from './routes/dead-letters.ts';
import { isEventId, noSuchEvent } from './routes/event-id.ts';
import { isRunId, noSuchRun } from './routes/run-id.ts';
import { isSessionId } from './routes/session-id.ts';

/** What the parameters of addresses name, in the order in which an unknown one is reported. Routines that are triggered, and webhooks, are checked by their routes. */
export function namedInAddresses(
  { sessionLog, customerRows, runRows, deadLetterRows }: Components,
  { variables, journeys }: { variables: DeclaredVariables; journeys: Pick<Journeys, 'has'> },
  log: Log,
) {
  const known = (what: string, isPossible: (id: string) => boolean, find: (id: string, params: unknown) => Promise<boolean>): Named['isKnown'] => {
    return async (id, params) => {
      if (!isPossible(id)) return false;
      try {
        return await find(id, params);
      } catch (error) {
        log.warn({ err: error, [`${what}_id`]: id }, `a ${what} could not be looked up`);
        return null;
      }
    };
  };
  const isKnownCustomer = known('customer', isCustomerId, async (id) => (await customerRows.byId(id)) !== null);
  const isEventOf = async (id: string, params: unknown) => {
    const sessionId = typeof params === 'object' && params !== null ? Reflect.get(params, 'session_id') : null;
    return typeof sessionId === 'string' && isSessionId(sessionId) && (await sessionLog.event(sessionId, id)) !== null;
  };
  return {
    session_id: { isKnown: known('session', isSessionId, async (id) => (await sessionLog.heads([id])).has(id)), notFound: noSuchSession },
    event_id: { isKnown: known('event', isEventId, isEventOf), notFound: noSuchEvent },
    customer_id: { isKnown: isKnownCustomer, notFound: noSuchCustomer },
    run_id: { isKnown: known('run', isRunId, async (id) => (await runRows.byId(id)) !== null), notFound: noSuchRun },
    dead_letter_id: { isKnown: known('dead_letter', isDeadLetterId, (id) => deadLetterRows.has(id)), notFound: noSuchDeadLetter },
    variable_name: { isKnown: async (name) => variables.has(name), notFound: noSuchVariable },
    journey_id: { isKnown: async (id) => journeys.has(id), notFound: noSuchJourney },
    key: { isKnown: async (key) => isSharedKey(key) || isKnownCustomer(key), notFound: noSuchCustomer },
  } satisfies Record<string, Named>;
}
