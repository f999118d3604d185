import { mayCall, nothingUsed, type Used } from './budget.ts';
import { criticalPolicies } from './composition/reply-check.ts';
import type { EngineDocuments } from './engine-documents.ts';
import type { SaidText } from './likeness/said-text.ts';
import { type Matched, matchingPhase } from './matching-phase.ts';
import { policiesToTrack } from './policies/applied-policies.ts';
import type { SincePass } from './routines/plan-routine.ts';
import { parameterQuestions } from './tools/parameter-questions.ts';
import { inferredIn, stepsWithoutNeed } from './tools/steps-without-need.ts';
import { toolsToReevaluate } from './tools/tool-batch.ts';
import { iterationOf, type PlannedCall, type ToolRound, toolRound } from './tools/tool-rounds.ts';
import { noTools, planInference, type ToolListsByServer, type ToolsOf } from './tools/turn-tools.ts';
import { type CallRequest, requestOf } from './turn-calls.ts';
import { currentRows, type RowOf, type TurnRow } from './turn-row.ts';

/** What a turn does next. */
export type Decision =
  /** Makes calls side by side, and decides again when all have their row. `status`: the stage that begins, null for none. */
  | { type: 'ask'; status: 'matching' | 'tools' | null; calls: readonly CallRequest[] }
  /** The same, of tools. */
  | { type: 'call'; status: 'tools'; calls: readonly PlannedCall[] }
  /** Has vectors made of what was said, and decides again when they have their row. */
  | { type: 'embed'; status: null; texts: readonly SaidText[] }
  | { type: 'compose'; resolved: RowOf<'resolved'> };

/**
 * What a turn does next, from its documents and its rows alone: equal rows give equal decisions in any process, in whatever order the rows arrived.
 * @param rows of the turn, in order; the first is `began`
 * @param toolsOf the lists that the turn began with
 * @param used so far: a turn that may make no further calls answers with what it has found out (rule 88)
 */
export function decide(documents: EngineDocuments, rows: readonly TurnRow[], toolsOf: ToolsOf = noTools, used: Used = nothingUsed): Decision {
  const { began, rows: current } = currentRows(rows);
  const { compares = [] } = began;
  if (compares.length > 0 && !current.some(({ kind }) => kind === 'likeness')) return { type: 'embed', status: null, texts: compares };
  const facts = toolFactsOf(began, rows, current, toolsOf);
  let before = facts.earlier;
  /** Tools of earlier iterations that have taken no routine on. */
  let unused: readonly string[] = [];
  const since: SincePass[] = [];
  const composed = (found: Matched, cutShort: CutShort = null): Decision => {
    return { type: 'compose', resolved: resolvedOf(found, { documents, began, rows, current, lists: facts.lists, cutShort }) };
  };
  let found: Matched | null = null;
  for (;;) {
    const phase = matchingPhase({ documents, began, rows: current, since });
    if (phase.type === 'ask') return found === null || mayCall(used, phase.calls.length) ? { ...phase, status: 'matching' } : composed(found, 'budget');
    found = phase;
    const iteration = since.length + 1;
    const { steps } = phase.routines;
    const policies = documents.policies.filter(({ id }) => phase.policies.has(id));
    const round = toolRound({ iteration, policies, steps: steps.map((step) => toolStep(step, documents)), ...facts });
    if (round.type === 'infer' && !mayCall(used, round.requests.length)) return composed(phase, 'budget');
    if (round.type !== 'done') return toolDecision(round, documents);
    const ofSteps = steps.flatMap(({ pendingTools }) => pendingTools);
    // What the step's tools did before a message joined is not done again, and takes the routine on all the same.
    const executed = [...round.executed, ...before.filter(({ toolId }) => ofSteps.includes(toolId))];
    before = before.filter(({ toolId }) => !ofSteps.includes(toolId));
    const forcing = toolsToReevaluate(executed, documents.reevaluationTools, ofSteps);
    const ranTools = new Set(executed.map(({ toolId }) => toolId));
    const doneSteps = stepsWithoutNeed(steps, { ranTools, ranBefore: new Set(unused), inferred: inferredIn(iteration, facts.inferences) });
    unused = [...unused, ...ranTools].filter((toolId) => !ofSteps.includes(toolId));
    if (forcing.length === 0 && doneSteps.size === 0) return composed(phase);
    // At the cap the turn answers with what it has.
    if (iteration >= documents.maxIterations) return composed(phase, 'iterations');
    since.push({ ranTools, doneSteps });
  }
}

type CutShort = 'iterations' | 'budget' | null;

interface Facts {
  documents: EngineDocuments;
  began: RowOf<'began'>;
  rows: readonly TurnRow[];
  /** Without those of before a message joined. */
  current: readonly TurnRow[];
  lists: ToolListsByServer;
  cutShort: CutShort;
}

function resolvedOf({ matching, policies, routines, resolutions }: Matched, { documents, began, rows, current, lists, cutShort }: Facts): RowOf<'resolved'> {
  const questions = questionsOf(rows, current);
  const tracked = policiesToTrack(documents.policies, {
    applying: new Set(policies.keys()),
    applied: new Set(began.state.appliedPolicyIds),
    evaluations: documents.policyEvaluations,
  });
  const critical = criticalPolicies(documents, new Set(policies.keys()));
  const steps = routines.steps.map((step) => toolStep(step, documents));
  const inForce = documents.policies.filter(({ id }) => policies.has(id));
  const unlisted = documents.toolServers.size === 0 ? [] : planInference({ policies: inForce, steps, lists, inferred: new Set() }).unlisted;
  return {
    kind: 'resolved',
    policies: [...policies].map(([id, rationale]) => ({ id, rationale })),
    clarifications: matching.clarifications,
    steps: routines.steps.map(({ routineId, stepId }) => ({ routineId, stepId })),
    paths: Object.fromEntries(Object.entries(routines.paths).map(([id, path]) => [id, [...path]])),
    tracked: tracked.map(({ id }) => id),
    resolutions: resolutions.filter(({ outcome }) => outcome !== 'none'),
    ...(questions.length > 0 && { questions }),
    ...(critical.length > 0 && { critical }),
    ...(unlisted.length > 0 && { unlisted }),
    ...(cutShort !== null && { cutShort }),
  };
}

function toolStep({ routineId, stepId, pendingTools }: Matched['routines']['steps'][number], { routineModels }: EngineDocuments) {
  const model = routineModels.find(({ routine }) => routine.id === routineId);
  return { routineId, stepId, tools: pendingTools, instruction: model?.graph.nodes.get(stepId)?.action ?? null };
}

function toolFactsOf(began: RowOf<'began'>, rows: readonly TurnRow[], current: readonly TurnRow[], toolsOf: ToolsOf) {
  const lists: ToolListsByServer = Object.fromEntries(
    Object.entries(began.lists ?? {}).flatMap(([server, hash]) => {
      const tools = toolsOf(hash);
      return tools === null ? [] : [[server, { hash, tools }]];
    }),
  );
  const before = rows.slice(0, rows.length - current.length);
  return {
    lists,
    inferences: new Map(current.flatMap((row) => (row.kind === 'infer-tools' ? [[row.key, row] as const] : []))),
    settled: new Map(current.flatMap((row) => (row.kind === 'tool' ? [[row.key, row.call] as const] : []))),
    earlier: before.flatMap((row) => (row.kind === 'tool' ? [row.call] : [])),
  };
}

function toolDecision(round: Exclude<ToolRound, { type: 'done' }>, documents: EngineDocuments): Decision {
  if (round.type === 'call') return { type: 'call', status: 'tools', calls: round.calls };
  return { type: 'ask', status: 'tools', calls: round.requests.map((request) => requestOf('infer-tools', request, documents)) };
}

/** Of the last inferences: what an earlier one missed may be known since. */
function questionsOf(rows: readonly TurnRow[], current: readonly TurnRow[]) {
  const inferences = current.flatMap((row) => (row.kind === 'infer-tools' ? [row] : []));
  const last = Math.max(0, ...inferences.map(({ key }) => iterationOf(key)));
  const ran = new Set(rows.flatMap((row) => (row.kind === 'tool' ? [row.call.toolId] : [])));
  return parameterQuestions(
    inferences.filter(({ key }) => iterationOf(key) === last).map(({ answer }) => answer),
    ran,
  );
}
