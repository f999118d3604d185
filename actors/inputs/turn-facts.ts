import type { SessionCommand } from '#bus/messages/session.ts';
import type { ListedTool } from '#bus/messages/tool.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { readAgentState, withAmendments } from '../engine/agent-state.ts';
import { type EngineDocuments, engineDocumentsOf } from '../engine/engine-documents.ts';
import { readTurnRows, type TurnRow } from '../engine/turn-row.ts';
import { sessionActor } from '../kinds/session/actor.ts';
import { turnActor } from '../kinds/turn/actor.ts';
import { checkedTurnOf } from '../kinds/turn/applied-check.ts';
import { type SessionState, stateIn } from '../runtime/apply/session-state.ts';
import type { TurnStore } from '../store/port/turn-store.ts';
import type { TurnFacts } from './actor-inputs.ts';
import type { EvaluationsReader } from './evaluations-reader.ts';

export interface TurnFactsDeps {
  turns: TurnStore;
  /** By hash; omits tool lists that are missing or unreadable. */
  lists(hashes: ReadonlySet<string>): Promise<Map<string, readonly ListedTool[]>>;
  evaluations: Pick<EvaluationsReader, 'newestSet' | 'read'>;
  bundleOf(hash: string): Promise<Bundle>;
  log: Log;
}

/**
 * Reads what turns with an engine need. Undefined: no command is for one, and nothing was queried.
 * @throws transient errors, such as those of an unavailable database
 */
export async function readTurnFacts(
  deps: TurnFactsDeps,
  commands: readonly SessionCommand[],
  states: ReadonlyMap<string, SessionState | null>,
): Promise<TurnFacts | undefined> {
  const documents = new Map<string, EngineDocuments | null>();
  /** Bundles of agents with preambles. */
  const preambles = new Set<string>();
  const sessionIds = new Set<string>();
  /** With their bundles. */
  const turnIds = new Map<string, string>();
  /** Turns that are over. */
  const checked: string[] = [];
  for (const command of commands) {
    const state = states.get(command.sessionId) ?? null;
    const turn = state === null ? null : stateIn(state, turnActor);
    const checkedTurn = checkedTurnOf(command);
    if (checkedTurn !== null) checked.push(checkedTurn);
    let hasEngine = checkedTurn !== null;
    for (const hash of bundlesOf(command, state)) {
      if (!documents.has(hash)) {
        documents.set(hash, await documentsOf(hash, deps));
        if (await hasPreambles(hash, deps)) preambles.add(hash);
      }
      hasEngine ||= documents.get(hash) !== null || preambles.has(hash);
    }
    if (!hasEngine) continue;
    sessionIds.add(command.sessionId);
    if (turn?.context.engine !== undefined) turnIds.set(turn.context.turnId, turn.bundleHash);
  }
  if (sessionIds.size === 0) return undefined;
  const [stored, staged] = await Promise.all([
    deps.turns.agentStates([...sessionIds]),
    turnIds.size + checked.length === 0 ? null : deps.turns.staged([...turnIds.keys(), ...checked]),
  ]);
  const rows = new Map<string, TurnRow[]>([...(staged ?? [])].map(([id, found]) => [id, readTurnRows(found.map(({ body }) => body))]));
  const { newest, tools } = await readTools(deps, documents, [...rows.values()].flat());
  const agentStates = new Map(
    [...stored].map(([id, { offset, state, amendments = [] }]) => [
      id,
      { offset, state: withAmendments(readAgentState(state), amendments.map(readAgentState)) },
    ]),
  );
  const pinned = new Map<string, EngineDocuments | null>();
  for (const [hash, found] of documents) pinned.set(`${hash} ${found?.evaluationSet ?? null}`, found);
  for (const [turnId, bundleHash] of turnIds) {
    const set = rows.get(turnId)?.findLast((row) => row.kind === 'began')?.evaluations ?? null;
    const key = `${bundleHash} ${set}`;
    if (!pinned.has(key)) pinned.set(key, await documentsOf(bundleHash, deps, set));
  }
  return {
    documentsOf: (hash, set) => (set === undefined ? documents.get(hash) : pinned.get(`${hash} ${set}`)) ?? null,
    hasPreambles: (hash) => preambles.has(hash),
    agentStateOf: (sessionId) => agentStates.get(sessionId) ?? null,
    listsOf: (bundleHash) => newest.get(bundleHash) ?? {},
    toolsOf: (listHash) => tools.get(listHash) ?? null,
    rowsOf: (turnId) => rows.get(turnId) ?? [],
  };
}

/** The newest lists, for turns that begin, and those that turns in progress began with. Without policies that name tools nothing is queried. */
async function readTools({ turns, lists }: TurnFactsDeps, documents: ReadonlyMap<string, EngineDocuments | null>, rows: readonly TurnRow[]) {
  const bundles = [...documents].flatMap(([hash, read]) => (read !== null && read.toolServers.size > 0 ? [hash] : []));
  const newest = bundles.length === 0 ? new Map<string, Record<string, string>>() : await turns.toolLists(bundles);
  const begun = rows.flatMap((row) => (row.kind === 'began' ? Object.values(row.lists ?? {}) : []));
  return { newest, tools: await lists(new Set([...begun, ...[...newest.values()].flatMap((found) => Object.values(found))])) };
}

/** Of the turns that the command may begin, or is for. */
function bundlesOf(command: SessionCommand, state: SessionState | null): string[] {
  const ofCommand = 'triggersTurn' in command && command.triggersTurn ? [command.bundleHash] : [];
  if (state === null) return ofCommand;
  const turn = stateIn(state, turnActor);
  const wanted = stateIn(state, sessionActor)?.context.wanted ?? null;
  return [...ofCommand, ...(turn === null ? [] : [turn.bundleHash]), ...(wanted === null ? [] : [wanted.bundleHash])];
}

/** False for an unreadable one, which is logged with its documents. */
async function hasPreambles(hash: string, { bundleOf }: Pick<TurnFactsDeps, 'bundleOf'>): Promise<boolean> {
  try {
    return (await bundleOf(hash)).body.manifest.agent_config.context.preamble !== null;
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return false;
  }
}

function isUnreadable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'config.invalid';
}

/**
 * A turn on an unreadable bundle is one model call, whose rendering fails.
 * @param pinned the set of evaluations; absent: the newest one
 */
async function documentsOf(hash: string, { bundleOf, evaluations, log }: TurnFactsDeps, pinned?: string | null): Promise<EngineDocuments | null> {
  try {
    const bundle = await bundleOf(hash);
    // An agent without an engine has nothing to look up.
    if (engineDocumentsOf(bundle.body) === null) return null;
    const set = pinned === undefined ? await evaluations.newestSet(bundle) : pinned;
    return engineDocumentsOf(bundle.body, await evaluations.read(bundle, set));
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    log.error({ err: error, bundle: hash }, 'the configuration of a turn could not be read');
    return null;
  }
}
