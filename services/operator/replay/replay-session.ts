import { noAgentState } from '#actors/engine/agent-state.ts';
import { engineDocumentsOf } from '#actors/engine/engine-documents.ts';
import { CustomerReader } from '#actors/inputs/customer-reader.ts';
import { EvaluationsReader } from '#actors/inputs/evaluations-reader.ts';
import { customerRows } from '#actors/store/sql/customer-rows.ts';
import { listedTool } from '#bus/messages/tool.ts';
import type { Clock } from '#shared/clock.ts';
import { bundleStore } from '#shared/config/bundle-store.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Conversation, type ToolCallItem, type ToolOutcome } from '../conversation/conversation.ts';
import { type Decisions, decisionsOf } from '../conversation/decisions.ts';
import type { Models } from '../conversation/open-models.ts';
import { messagesIn } from '../conversation/rendering.ts';
import type { SessionPast, ToolLists } from '../conversation/session-in-memory.ts';
import { type Difference, differencesOf } from './differences.ts';
import { RecordedAnswers, type Used } from './recorded-answers.ts';
import { type RecordedSession, type RecordedTurn, stateBefore } from './recorded-session.ts';

export interface ReplayedTurn {
  /** In the recorded log, of the first message. */
  offset: number;
  /** Its text, or the tool whose result began the turn. */
  about: string;
  recorded: Decisions;
  replayed: Decisions;
  differences: Difference[];
}

export interface Replay {
  turns: ReplayedTurn[];
  fromRecord: Used;
  /** Model calls without a recorded answer. */
  asked: number;
  /** Tool calls without a recorded result, in words: they were not made. */
  suppressed: string[];
  /** Servers whose tools are not known, since no list of them is recorded. */
  unlisted: string[];
}

interface ReplayDeps {
  sessionId: string;
  session: RecordedSession;
  /** The first turn whose messages begin there, or later. */
  fromOffset: number;
  bundle: Bundle;
  models: Pick<Models['calls'], 'execute'>;
  database: Queryable;
  clock: Clock;
  log: Log;
}

/**
 * Forks a recorded session in memory, and plays the messages of its customer from there with other documents. It reads the database alone: nothing is stored,
 * and no tool is called.
 * @throws `request.invalid` where there is nothing to replay
 */
export async function replaySession(deps: ReplayDeps): Promise<Replay> {
  const { session, fromOffset, bundle, models, database, clock, log } = deps;
  const turns = turnsFrom(deps);
  const evaluations = new EvaluationsReader({ store: evaluationStore(database), clock });
  const answers = new RecordedAnswers({
    turns: session.turns,
    log: session.events,
    bundleOf: cachedBundles(database),
    evaluationsOf: (given, set) => evaluations.read(given, set),
  });
  const { customerId } = session;
  const customers = new CustomerReader({ store: customerRows(database), clock, log });
  const customer = await customers.ofTurn('replay', { sessionId: deps.sessionId, customerId, bundleHash: bundle.hash }, bundle.body.documents);
  const needed = engineDocumentsOf(bundle.body)?.toolServers ?? new Set<string>();
  const tools = await readLists(database, turns, needed);
  let lists = turns.map(listsOf).find((named) => named !== null) ?? {};
  const done = { asked: 0, suppressed: [] as string[] };
  const conversation: Conversation = new Conversation(
    {
      ...{ bundle, tools, customer, past: pastOf(session, turns[0], fromOffset) },
      evaluations: await evaluations.read(bundle, turns[0].evaluations),
      answers: {
        recorded: (effect, item) => answers.find(conversation, effect, item),
        model: (call) => {
          done.asked += 1;
          return models.execute(call);
        },
        tool: (call) => suppress(call, done.suppressed),
      },
    },
    turns[0].atMs,
  );
  const replayed: ReplayedTurn[] = [];
  let isSame = true;
  for (const [index, turn] of turns.entries()) {
    // What the agent remembers is that of the record, as long as both conversations are the same: the check after a reply may have come late.
    conversation.goOnWith(await evaluations.read(bundle, turn.evaluations), isSame ? turn.state : null, turn.atMs);
    lists = listsOf(turn) ?? lists;
    tools.hashes = turn.bundleHash === bundle.hash ? lists : { ...tools.others, ...lists };
    answers.begin(turn, turns[index + 1]?.state ?? session.agentStates.at(-1)?.state ?? null);
    const exchange = await conversation.exchange(turn.posts, turn.atMs);
    const [recorded, now] = [decisionsOf(turn), decisionsOf(exchange)];
    const differences = differencesOf(recorded, now);
    replayed.push({ offset: turn.fromOffset, about: aboutOf(turn), recorded, replayed: now, differences });
    isSame &&= differences.length === 0 && textOf(conversation.session.log) === textOf(session.events.filter(({ offset }) => offset <= lastOf(turn)));
  }
  return { turns: replayed, fromRecord: answers.used, ...done, unlisted: [...needed].filter((server) => !Object.hasOwn(tools.hashes, server)) };
}

function turnsFrom({ session, fromOffset }: ReplayDeps): [RecordedTurn, ...RecordedTurn[]] {
  const [first, ...others] = session.turns.filter((turn) => turn.fromOffset >= fromOffset);
  if (first !== undefined) return [first, ...others];
  const last = session.events.at(-1)?.offset ?? -1;
  const what =
    session.turns.length === 0 ? 'the session has no turn that has ended' : `no turn begins at offset ${fromOffset} or later: the last event has ${last}`;
  throw new SwitchyardError('request.invalid', `there is nothing to replay: ${what}`);
}

/** From the beginning on, the greeting is that of the other documents, if the session has one. */
function pastOf(session: RecordedSession, { fromOffset: begin, state }: RecordedTurn, fromOffset: number): SessionPast | null {
  const events = session.events.filter(({ offset }) => offset < begin);
  if (fromOffset > 0) return { events, agentState: state ?? stateBefore(session, begin) };
  const isGreeted = events.some(({ kind, source }) => kind === 'assistant_message' && source === 'ai_agent');
  return isGreeted ? null : { events: [], agentState: noAgentState };
}

/** Null: unknown, or of a release that this one can't read. */
function cachedBundles(database: Queryable): (hash: string) => Promise<Bundle | null> {
  const store = bundleStore(database);
  const known = new Map<string, Promise<Bundle | null>>();
  const read = async (hash: string) => {
    try {
      return await store.read(hash);
    } catch (error) {
      if (error instanceof SwitchyardError && error.code === 'config.invalid') return null;
      throw error;
    }
  };
  return (hash) => {
    const found = known.get(hash) ?? read(hash);
    known.set(hash, found);
    return found;
  };
}

interface ReplayLists extends ToolLists {
  hashes: Readonly<Record<string, string>>;
  /** Of servers that no recorded turn has named. */
  readonly others: Readonly<Record<string, string>>;
}

/** As the recorded turns had them. @param servers whose tools the documents name; of those that no turn has named, the newest list of any configuration */
async function readLists(database: Queryable, turns: readonly RecordedTurn[], servers: ReadonlySet<string>): Promise<ReplayLists> {
  const recorded = turns.flatMap((turn) => Object.entries(listsOf(turn) ?? {}));
  const others = [...servers].filter((server) => !recorded.some(([named]) => named === server));
  const { rows: newest } = await database.query<{ server_id: string; list_hash: string }>(NEWEST_LISTS, [others]);
  const unnamed = Object.fromEntries(newest.map((row) => [row.server_id, row.list_hash]));
  const hashes = [...recorded.map(([, hash]) => hash), ...Object.values(unnamed)];
  const { rows } = await database.query<{ hash: string; tools: unknown }>('select hash, tools from tool_lists where hash = any($1::text[])', [hashes]);
  const tools = new Map(rows.map((row) => [row.hash, listedTool.array().safeParse(row.tools).data ?? null]));
  return { others: unnamed, hashes: unnamed, toolsOf: (hash) => tools.get(hash) ?? null };
}

const NEWEST_LISTS = `
  select distinct on (server_id) server_id, list_hash from tool_servers
  where server_id = any($1::text[]) and list_hash is not null order by server_id, checked_at desc`;

/** Null: the turn has named none. */
function listsOf({ rows }: RecordedTurn): Record<string, string> | null {
  const began = rows.findLast((row) => row.kind === 'began');
  return began?.kind === 'began' ? (began.lists ?? null) : null;
}

function suppress({ toolId, arguments: given }: ToolCallItem, suppressed: string[]): ToolOutcome {
  suppressed.push(`${toolId} ${canonicalJson(given)}`);
  return { type: 'failed', reason: 'unreachable', message: 'a replay calls no tool, and no result of this call is recorded' };
}

function aboutOf({ posts }: RecordedTurn): string {
  const [first] = posts;
  if (first === undefined) return '';
  return first.type === 'message' ? first.text : first.toolId;
}

function lastOf({ events }: RecordedTurn): number {
  return events.at(-1)?.offset ?? -1;
}

/** What later prompts may contain of it. */
function textOf(log: readonly ConversationEvent[]): string {
  return canonicalJson(
    messagesIn(log).map((event) => [event.kind, event.source, 'text' in event ? event.text : 'tool_calls' in event ? event.tool_calls : null]),
  );
}
