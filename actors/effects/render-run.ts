import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { type ListedTool, listedTool, type ToolWork } from '#bus/messages/tool.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { composeRun } from '../engine/compose-run.ts';
import { runTools } from '../engine/run-tools.ts';
import type { StepMessage } from '../kinds/run/types.ts';
import type { EffectOf } from './effects.ts';
import type { RenderDeps } from './render-deps.ts';
import { replyTo } from './reply-to.ts';

/** Renders a run's model call from its row, transcript and tool lists. */
export async function renderRunCall(effect: EffectOf<'run-call'>, republished: boolean, deps: RenderDeps): Promise<RouterCall> {
  const { inputs, sessionId, createdAtMs } = effect;
  const { runId, stepCount } = inputs;
  const { manifest, documents } = (await deps.bundleOf(inputs.bundleHash)).body;
  const { context, llms } = manifest.agent_config;
  const run = await readRun(deps.database, runId);
  const routine = documents.routines.find((one) => one.kind === 'autonomous' && one.id === run.routineId);
  if (routine?.kind !== 'autonomous') throw new SwitchyardError('config.invalid', `the configuration lacks the autonomous routine ${run.routineId}`);
  const promptOf = ({ id, version }: { id: string; version: number }) => {
    const prompt = documents.prompts.find((one) => one.id === id && one.version === version);
    if (prompt === undefined) throw new SwitchyardError('config.invalid', `the configuration lacks the prompt ${id} version ${version}`);
    return prompt.text;
  };
  const { messages, tools, tool_choice } = composeRun({
    runId,
    agent: { id: manifest.id, name: manifest.name },
    systemPrompt: promptOf(context.system_prompt),
    routine,
    instructions: typeof routine.instructions === 'string' ? routine.instructions : promptOf(routine.instructions),
    input: run.input,
    steps: await readSteps(deps.database, runId, stepCount),
    tools: runTools({ selectors: routine.tools, lists: await readLists(deps.database, inputs.lists), outputSchema: routine.output_schema }),
    nowMs: createdAtMs,
  });
  const [firstFallback, ...furtherFallbacks] = llms.fallback;
  const usesFallback = inputs.useFallbackModel && firstFallback !== undefined;
  const others = usesFallback ? furtherFallbacks : llms.fallback;
  return {
    v: 1,
    callId: effect.id,
    origin: sessionId,
    want: 'none',
    deadlineAtMs: inputs.deadlineAtMs,
    createdAtMs,
    detached: false,
    republished,
    keyId: 'llms.api_key',
    traceparent: inputs.traceparent,
    maxTokens: deps.settings.maxTokens,
    request: {
      messages,
      tools,
      tool_choice,
      model: usesFallback ? firstFallback : llms.default,
      models: others.length > 0 ? others : undefined,
      session_id: sessionId,
    },
    reply: replyTo(effect, deps),
  };
}

/** Renders a tool call; its arguments are in the transcript's reply that asked for it. */
export async function renderToolCall(effect: EffectOf<'tool-call'>, republished: boolean, { database }: RenderDeps): Promise<ToolWork> {
  const { id: effectId, sessionId, actorId, createdAtMs, inputs } = effect;
  const { bundleHash, deadlineAtMs, listHash, runId, toolCallId, toolId, traceparent } = inputs;
  const { rows } = await database.query<{ message: StepMessage }>(SELECT_ASSISTANT_MESSAGES, [runId]);
  const call = rows.flatMap(({ message }) => (message.role === 'assistant' ? (message.tool_calls ?? []) : [])).find(({ id }) => id === toolCallId);
  if (call === undefined) throw new TypeError(`no answer of run ${runId} asks for ${toolCallId}`);
  const args = JSON.parse(call.function.arguments === '' ? '{}' : call.function.arguments) as Record<string, unknown>;
  return {
    v: 1,
    type: 'call',
    effectId,
    sessionId,
    ...actorFields(actorId),
    bundleHash,
    deadlineAtMs,
    createdAtMs,
    republished,
    traceparent,
    toolId,
    listHash,
    arguments: args,
  };
}

async function readRun(database: Queryable, runId: string): Promise<{ routineId: string; input: unknown }> {
  const { rows } = await database.query<{ routine_id: string; input: unknown }>('select routine_id, input from runs where id = $1', [runId]);
  const [row] = rows;
  if (row === undefined) throw new TypeError(`there is no row of run ${runId}`);
  return { routineId: row.routine_id, input: row.input };
}

async function readSteps(database: Queryable, runId: string, count: number): Promise<StepMessage[]> {
  const { rows } = await database.query<{ message: StepMessage }>('select message from steps where run_id = $1 and seq < $2 order by seq', [runId, count]);
  return rows.map((row) => row.message);
}

async function readLists(database: Queryable, lists: Readonly<Record<string, string>>): Promise<Record<string, { hash: string; tools: ListedTool[] }>> {
  const hashes = Object.values(lists);
  if (hashes.length === 0) return {};
  const { rows } = await database.query<{ hash: string; tools: unknown }>('select hash, tools from tool_lists where hash = any($1::text[])', [hashes]);
  // Unreadable counts as missing, as in run-facts.ts.
  const tools = new Map(rows.map((row) => [row.hash, listedTool.array().safeParse(row.tools).data]));
  return Object.fromEntries(Object.entries(lists).map(([server, hash]) => [server, { hash, tools: tools.get(hash) ?? [] }]));
}

/** Newest first: models may repeat a call id in a later batch. Matched as text, since `->>` parses the whole message and refuses NUL and lone surrogates. */
const SELECT_ASSISTANT_MESSAGES = `select message from steps where run_id = $1 and message::text like '{"role":"assistant"%' order by seq desc`;
