import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import { type ListedTool, listedTool } from '#bus/messages/tool.ts';
import { cleanJson } from '#shared/clean-text.ts';
import { type Failure, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallableTools } from '../engine/callable-tools.ts';
import { composeRun } from '../engine/compose-run.ts';
import { glossaryTerms, termsNearTo } from '../engine/composition/nearest-terms.ts';
import { promptOf } from '../engine/prompt-of.ts';
import { readRunReply } from '../engine/read-run-reply.ts';
import { runPoliciesOf } from '../engine/run-policies.ts';
import { runStepsText } from '../engine/run-steps.ts';
import { runTools, selectorsOf } from '../engine/run-tools.ts';
import type { RunScope } from '../kinds/run/run-scope.ts';
import type { RunActions, RunEventBody } from '../kinds/run/types.ts';
import type { RunStore } from '../store/port/run-store.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import type { EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';

const inputs = z.object({
  ...commonInputs,
  /** Version of the rendering; those of 1 have nothing of the documents but the instructions. */
  template: z.enum(['run@1', 'run@2']),
  bundleHash: z.string(),
  runId: z.string(),
  /** The call is rendered from so many messages of the transcript. */
  stepCount: z.number(),
  useFallbackModel: z.boolean(),
  /** By server: hash of the tool list at the run's start. */
  lists: z.record(z.string(), z.string()),
});

type Request = Extract<RunActions['effect'], { kind: 'router-call' }>;

/** A run's model call, on its transcript and tool lists. */
export const runCall: EffectKind<z.infer<typeof inputs>, Request, RunScope, RunEventBody> = {
  name: 'run-call',
  actor: 'run',
  request: 'router-call',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, stepCount, useFallbackModel, lists }, { actorId: runId, bundleHash, traceparent }) => ({
    bundleHash,
    deadlineAtMs,
    traceparent,
    template: 'run@2',
    runId,
    stepCount,
    useFallbackModel,
    lists,
  }),
  render,
  results: {
    'call.completed': (command, scope) => ({
      type: 'call.replied',
      callId: command.callId,
      reply: readRunReply(command, { tools: scope.tools(), validateOutput: (value) => scope.checkOutput(value) }),
    }),
    'call.failed': (command) => ({ ...command, failure: command.failure as Failure }),
  },
  overdue: 'report',
};

async function render(effect: EffectRow<z.infer<typeof inputs>>, republished: boolean, deps: RenderDeps): Promise<RouterCall> {
  const { inputs: given, createdAtMs } = effect;
  const { runId, stepCount } = given;
  const { body } = await deps.bundleOf(given.bundleHash);
  const { manifest, documents } = body;
  const { context, llms } = manifest.agent_config;
  const run = await readRun(deps.runs, runId);
  const routine = documents.routines.find((one) => one.kind === 'autonomous' && one.id === run.routineId);
  if (routine?.kind !== 'autonomous') throw new SwitchyardError('config.invalid', `the configuration lacks the autonomous routine ${run.routineId}`);
  const isFirst = given.template === 'run@1';
  const callable = runTools({
    selectors: isFirst ? routine.tools : selectorsOf(routine),
    lists: await readLists(deps.runs, given.lists),
    outputSchema: routine.output_schema,
  });
  const { messages, tools, tool_choice } = composeRun({
    runId,
    agent: { id: manifest.id, name: manifest.name },
    systemPrompt: promptOf(documents, context.system_prompt),
    routine,
    instructions: typeof routine.instructions === 'string' ? routine.instructions : promptOf(documents, routine.instructions),
    input: run.input,
    steps: await deps.runs.transcript(runId, stepCount),
    tools: callable,
    nowMs: createdAtMs,
    ...(!isFirst && {
      documents: {
        glossary: termsNearTo(glossaryTerms(body), cleanJson(run.input)),
        steps: runStepsText(routine, documents, (toolId) => functionIn(callable, toolId)),
        policies: runPoliciesOf(body, routine.id),
      },
    }),
  });
  const usesFallback = given.useFallbackModel && llms.fallback.length > 0;
  const models = usesFallback ? llms.fallback : [llms.default, ...llms.fallback];
  return actorCall(effect, { republished, step: { name: 'run' }, want: 'none', models, request: { messages, tools, tool_choice } }, deps);
}

/** The tool's id where the model has no function for it: of very many tools not all fit into a request. */
function functionIn({ functions, toolOf }: CallableTools, toolId: string): string {
  return functions.find(({ function: { name } }) => toolOf(name)?.toolId === toolId)?.function.name ?? toolId;
}

async function readRun(runs: Pick<RunStore, 'load'>, runId: string): Promise<{ routineId: string; input: unknown }> {
  const [run] = await runs.load([runId]);
  if (run === undefined) throw new TypeError(`there is no row of run ${runId}`);
  return { routineId: run.routineId, input: JSON.parse(run.input) };
}

async function readLists(
  runs: Pick<RunStore, 'toolLists'>,
  lists: Readonly<Record<string, string>>,
): Promise<Record<string, { hash: string; tools: ListedTool[] }>> {
  const hashes = Object.values(lists);
  if (hashes.length === 0) return {};
  const stored = await runs.toolLists(hashes);
  // Unreadable counts as missing, as in run-facts.ts.
  const toolsOf = (hash: string) => listedTool.array().safeParse(stored.get(hash)).data ?? [];
  return Object.fromEntries(Object.entries(lists).map(([server, hash]) => [server, { hash, tools: toolsOf(hash) }]));
}
