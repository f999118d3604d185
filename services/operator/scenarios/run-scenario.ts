import { noEvaluations } from '#actors/engine/evaluation/evaluation-set.ts';
import { type KnownCustomer, unknownCustomer } from '#actors/inputs/customer-reader.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { Conversation, type ModelAnswer, type Post } from '../conversation/conversation.ts';
import { type Decisions, decisionsOf } from '../conversation/decisions.ts';
import type { Models } from '../conversation/open-models.ts';
import { type Mismatch, mismatchesOf } from './compare.ts';
import type { NamedScenario } from './read-scenarios.ts';
import type { ScenarioTurn } from './scenario.ts';
import { scenarioSearch } from './scenario-search.ts';
import { ScenarioTools } from './scenario-tools.ts';

/** Between turns of a scenario. */
const PAUSE_MS = 60_000;

interface TurnReport {
  /** The customer's first message, or what else began the turn. */
  about: string;
  decisions: Decisions;
  mismatches: Mismatch[];
}

export interface ScenarioReport {
  file: string;
  title: string;
  hasPassed: boolean;
  turns: TurnReport[];
  /** Why it could not be run to its end; null: it was. */
  fault: string | null;
}

interface RunDeps {
  bundle: Bundle;
  models: Pick<Models['calls'], 'execute'>;
  nowMs: number;
}

/** Plays a scenario; its documents' own texts count, not those of an evaluation at boot. */
export async function runScenario({ file, scenario }: NamedScenario, { bundle, models, nowMs }: RunDeps): Promise<ScenarioReport> {
  const { title, now, turns: given } = scenario;
  const tools = new ScenarioTools(scenario.tools);
  const search = scenarioSearch(scenario.search);
  const answers = {
    model: (call: Parameters<typeof models.execute>[0]): Promise<ModelAnswer> => models.execute(call),
    tool: tools.outcomeOf.bind(tools),
    ...(search !== null && { search }),
  };
  const startedAtMs = now === undefined ? nowMs : Date.parse(now);
  const conversation = new Conversation(
    { bundle, evaluations: noEvaluations, tools: tools.lists, past: null, customer: customerOf(scenario), answers },
    startedAtMs,
  );
  const turns: TurnReport[] = [];
  try {
    for (const [index, turn] of given.entries()) {
      const decisions = decisionsOf(await conversation.exchange(postsOf(turn), startedAtMs + (index + 1) * PAUSE_MS));
      const unanswered = tools.unanswered
        .splice(0)
        .map((call) => ({ expected: 'the scenario has an answer for each call', actual: `it has none for ${call}` }));
      turns.push({ about: aboutOf(turn), decisions, mismatches: [...mismatchesOf(turn.expect, decisions), ...unanswered] });
    }
  } catch (error) {
    return { file, title, hasPassed: false, turns, fault: error instanceof Error ? error.message : String(error) };
  }
  return { file, title, hasPassed: turns.every(({ mismatches }) => mismatches.length === 0), turns, fault: null };
}

function customerOf({ customer }: NamedScenario['scenario']): KnownCustomer {
  return customer === undefined ? unknownCustomer : { name: customer.name ?? null, values: new Map(Object.entries(customer.variables)) };
}

type EntryOf = NonNullable<ScenarioTurn['events']>[number];

function entriesOf({ customer, events }: ScenarioTurn): EntryOf[] {
  return customer === undefined ? (events ?? []) : [{ customer }];
}

/** Where the customer says nothing, the last event begins the turn. */
function postsOf(turn: ScenarioTurn): Post[] {
  const entries = entriesOf(turn);
  const isSaid = entries.some(({ customer }) => customer !== undefined);
  return entries.map((entry, index) => postOf(entry, isSaid ? entry.customer !== undefined : index === entries.length - 1));
}

function postOf({ customer, human_agent: human, system, tool_result: result }: EntryOf, triggersTurn: boolean): Post {
  const about = { metadata: {}, triggersTurn };
  if (result !== undefined) return { type: 'tool-result', ...about, toolId: result.tool, arguments: result.arguments, result: result.result };
  if (customer !== undefined) return { type: 'message', ...about, source: 'customer', text: customer };
  if (human !== undefined) return { type: 'message', ...about, source: 'human_agent', text: human };
  return { type: 'message', ...about, source: 'system', text: system ?? '' };
}

function aboutOf(turn: ScenarioTurn): string {
  const [first] = entriesOf(turn);
  return turn.customer ?? first?.customer ?? first?.human_agent ?? first?.system ?? first?.tool_result?.tool ?? '';
}
