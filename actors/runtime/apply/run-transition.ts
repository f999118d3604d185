import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { RunCallOutcome } from '#shared/contracts/agent/run.ts';
import { type SessionRecord, sessionOfRun } from '#shared/contracts/agent/session.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import { effects } from '../../effects/registry.ts';
import { type RunTools, runTools } from '../../engine/run-tools.ts';
import { outcomeOf, superseded } from '../../kinds/run/call-outcome.ts';
import { withinTime } from '../../kinds/run/failures.ts';
import { runMachine } from '../../kinds/run/machine.ts';
import type { RunScope } from '../../kinds/run/run-scope.ts';
import type { RunActions, RunError, RunEventBody, StepMessage } from '../../kinds/run/types.ts';
import type { RunProgress } from './commit-plan.ts';
import { callBack } from './deliveries.ts';
import { initialTransition, transition } from './transition.ts';
import type { AutonomousRoutine, RunFacts } from './transition-inputs.ts';
import { applyActions, type Handlers, type UnitOfWork } from './unit-of-work.ts';

interface Steps {
  runId: string;
  seq: number;
  message: StepMessage;
}

interface RunTransitionDeps {
  /** Messages staged by earlier commands of this commit. */
  stagedEarlier: readonly Steps[];
  onSettled(runId: string): void;
  /** A run without a callback has settled. */
  onNothingLeft(): void;
}

type RunResultCommand = CommandOf<'call.completed' | 'call.failed' | 'tools.listed' | 'tool.completed' | 'effect.overdue'>;

/** A session's run while one command is applied: executes the run machine's actions. */
export class RunTransition {
  readonly #unit: UnitOfWork;
  readonly #deps: RunTransitionDeps;
  /** Messages staged by this command. */
  readonly #staged = new Map<number, StepMessage>();
  #nextStep = 0;

  constructor(unit: UnitOfWork, deps: RunTransitionDeps) {
    this.#unit = unit;
    this.#deps = deps;
  }

  /** A result as an event of the run in progress; null when it belongs to another. */
  eventOf(command: RunResultCommand): RunEventBody | null {
    const { run } = this.#unit;
    if (run === null || run.context.runId !== command.actorId) return null;
    return effects.eventOf<RunScope, RunEventBody>('run', command, this.#scopeOf(command.actorId));
  }

  begin(runId: string): void {
    const unit = this.#unit;
    const facts = this.#factsOf(runId);
    const { atMs } = unit;
    unit.runMetadata = { runId, traceId: facts.traceId, bundleHash: facts.bundleHash, traceparent: facts.traceparent, startedAtMs: atMs };
    const { routine } = facts;
    const [next, actions] = initialTransition(runMachine, {
      runId,
      atMs,
      deadlineAtMs: Math.min(atMs + facts.timeoutMs, facts.expiresAtMs),
      timeoutMs: facts.timeoutMs,
      maxIterations: routine?.max_iterations ?? facts.bundle?.manifest.agent_config.runtime.max_engine_iterations ?? 1,
      servers: serversOf(routine),
      hasFallbackModel: (facts.bundle?.manifest.agent_config.llms.fallback.length ?? 0) > 0,
      refusal: refusalOf(facts, atMs),
    });
    this.#nextStep = 0;
    unit.run = { value: next.value as string, context: next.context };
    applyActions(this.#actions, actions);
    if (next.status === 'done') this.#end(facts);
  }

  notify(body: RunEventBody): void {
    const unit = this.#unit;
    const { run } = unit;
    if (run === null) return;
    const facts = this.#factsOf(run.context.runId);
    const event = { ...body, atMs: unit.atMs };
    this.#nextStep = run.context.stepCount;
    const [next, actions] = transition(runMachine, runMachine.resolveState(run as Parameters<typeof runMachine.resolveState>[0]), event);
    unit.run = { value: next.value as string, context: next.context };
    applyActions(this.#actions, actions);
    // A result with actions was an awaited one.
    if ('callId' in event && actions.length > 0) {
      unit.closeEffect(event.callId, 'done');
      this.#recordEnd(facts.id, event.callId, outcomeOf(event, unit.command));
    }
    if (next.status === 'done') this.#end(facts);
  }

  /** A waiting run settles in time, whatever happens to its session. */
  await(runId: string): void {
    this.#unit.arm(deadlineKeyOf(runId), this.#factsOf(runId).expiresAtMs, { type: 'run.deadline', ...actorFields(runId) });
  }

  /** For runs that never began, time counts from their acceptance. */
  failUnstarted(runIds: readonly string[], error: RunError): void {
    for (const runId of runIds) {
      const facts = this.#unit.transitionInputs.runOf(runId);
      if (facts === null) continue;
      this.#unit.disarm(deadlineKeyOf(runId));
      const limits = { deadlineAtMs: facts.expiresAtMs, timeoutMs: facts.timeoutMs };
      this.#settle(facts, { state: 'failed', error: withinTime(error, limits, this.#unit.atMs) }, facts.createdAtMs);
    }
  }

  recordFor(runId: string): SessionRecord {
    const facts = this.#factsOf(runId);
    const { sessionId: id, customerId } = facts;
    return sessionOfRun({ id, customerId, agentId: facts.bundle?.manifest.id ?? '', at: new Date(this.#unit.atMs).toISOString() });
  }

  readonly #actions: Handlers<RunActions> = {
    started: () => {
      const { runMetadata, partition } = this.#unit;
      if (runMetadata === null) throw new TypeError('a run without metadata');
      const { runId: id, startedAtMs } = runMetadata;
      this.#unit.note('a run began', { run_id: id, trace_id: runMetadata.traceId });
      this.#unit.write((plan) => plan.recordRun({ partition, id, state: 'running', output: null, error: null, startedAtMs, completedAtMs: null }));
    },
    fact: ({ content, metadata }) => {
      this.#unit.append(content, { source: 'ai_agent', metadata, traceId: this.#traceId(), id: null });
    },
    stage: ({ message }) => {
      const { partition, sessionId } = this.#unit;
      const runId = this.#runId();
      const seq = this.#nextStep;
      this.#nextStep += 1;
      this.#staged.set(seq, message);
      this.#unit.write((plan) => plan.stage(partition, sessionId, runId, seq, message));
    },
    toolEvent: ({ calls }) => this.#appendToolEvent(calls),
    effect: (effect) => this.#openEffect(effect),
    supersede: ({ id }) => {
      this.#unit.closeEffect(id, 'superseded');
      this.#recordEnd(this.#runId(), id, superseded);
    },
    timer: ({ key, atMs, command }) => {
      const actor = actorFields(this.#runId());
      this.#unit.arm(key, atMs, command === 'run.deadline' ? { type: 'run.deadline', ...actor } : { ...command, ...actor });
    },
    disarm: ({ key }) => this.#unit.disarm(key),
    settle: (outcome) => {
      const { runMetadata } = this.#unit;
      this.#settle(this.#factsOf(this.#runId()), outcome, runMetadata?.startedAtMs ?? this.#unit.atMs);
    },
  };

  #end(facts: RunFacts): void {
    this.#unit.run = null;
    this.#deps.onSettled(facts.id);
    if (facts.callbackUrl === null) this.#deps.onNothingLeft();
  }

  #settle(facts: RunFacts, outcome: RunActions['settle'], startedAtMs: number): void {
    const unit = this.#unit;
    const progress: RunProgress = {
      partition: unit.partition,
      id: facts.id,
      state: outcome.state,
      output: outcome.state === 'succeeded' ? outcome.output : null,
      error: outcome.state === 'failed' ? withDetails(outcome.error, facts) : null,
      startedAtMs,
      completedAtMs: unit.atMs,
    };
    const end = { of: 'run' as const, outcome: progress.error?.code ?? progress.state, durationMs: unit.atMs - startedAtMs };
    unit.note('a run ended', { run_id: facts.id, trace_id: facts.traceId }, end);
    const { id, routineId, bundleHash, traceparent: parent } = facts;
    unit.noteEnd({ kind: 'run', id, routineId, bundleHash, parent, startedAtMs, outcome: progress.error?.code ?? progress.state });
    unit.write((plan) => plan.recordRun(progress));
    callBack(unit, facts, progress);
  }

  #recordEnd(runId: string, effectId: string, outcome: RunCallOutcome): void {
    const { partition, atMs: endedAtMs } = this.#unit;
    this.#unit.write((plan) => plan.runCalls.push({ partition, runId, effectId, outcome, endedAtMs }));
  }

  #openEffect(effect: RunActions['effect']): void {
    const { runMetadata } = this.#unit;
    if (runMetadata === null) throw new TypeError('an effect outside a run');
    const { bundleHash, runId, traceparent } = runMetadata;
    this.#unit.openEffect('run', effect.id, effect, { actorId: runId, bundleHash, traceparent: contextBelow(traceparent, runId) });
  }

  #appendToolEvent(calls: RunActions['toolEvent']['calls']): void {
    const runId = this.#runId();
    const staged = new Map(this.#unit.transitionInputs.stagedOf(runId));
    for (const step of this.#deps.stagedEarlier) if (step.runId === runId) staged.set(step.seq, step.message);
    for (const [seq, message] of this.#staged) staged.set(seq, message);
    // Newest first: models may repeat a call id in a later batch.
    const messages = [...staged].sort(([left], [right]) => right - left).map(([, message]) => message);
    const entries = calls.map(({ toolCallId, toolId }) => ({
      tool_id: toolId,
      arguments: argumentsOf(messages, toolCallId),
      result: resultOf(messages, toolCallId),
    }));
    this.#unit.append({ kind: 'tool', tool_calls: entries }, { source: 'ai_agent', metadata: {}, traceId: this.#traceId(), id: null });
  }

  #scopeOf(runId: string): RunScope {
    const facts = this.#factsOf(runId);
    return {
      servers: serversOf(facts.routine),
      tools: () => this.#tools(facts),
      checkOutput: (value) => facts.checkOutput(value),
      toolIdOf: (callId) => this.#unit.run?.context.pending.find((call) => call.callId === callId)?.toolId ?? '',
      isRepeatable: (toolId) => this.#isRepeatable(toolId),
    };
  }

  #isRepeatable(toolId: string): boolean {
    const [server = '', ...name] = toolId.split(':');
    const listHash = this.#unit.run?.context.lists[server];
    const list = listHash === undefined ? null : this.#unit.transitionInputs.toolsOf(listHash);
    return list?.find((tool) => tool.name === name.join(':'))?.repeatable ?? false;
  }

  #tools({ routine }: RunFacts): RunTools {
    const lists = Object.fromEntries(
      Object.entries(this.#unit.run?.context.lists ?? {}).map(([server, hash]) => [
        server,
        { hash, tools: [...(this.#unit.transitionInputs.toolsOf(hash) ?? [])] },
      ]),
    );
    return runTools({ selectors: routine?.tools ?? [], lists, outputSchema: routine?.output_schema ?? {} });
  }

  #factsOf(runId: string): RunFacts {
    const facts = this.#unit.transitionInputs.runOf(runId);
    if (facts === null) throw new TypeError(`there is no row of run ${runId}`);
    return facts;
  }

  #runId(): string {
    const { runMetadata } = this.#unit;
    if (runMetadata === null) throw new TypeError('a run without metadata');
    return runMetadata.runId;
  }

  #traceId(): string {
    return this.#unit.runMetadata?.traceId ?? this.#unit.ownTraceId();
  }
}

function serversOf(routine: AutonomousRoutine | null): string[] {
  return [...new Set((routine?.tools ?? []).map((selector) => selector.slice(0, selector.indexOf(':'))))];
}

/** Why a run can't begin; null when it can. */
function refusalOf(facts: RunFacts, atMs: number): RunError | null {
  if (atMs >= facts.expiresAtMs) return { code: 'timeout', message: 'the run waited longer than a run may take', details: {} };
  if (facts.bundle === null) return { code: 'engine_error', message: 'the configuration that the run was accepted under can not be read', details: {} };
  if (facts.routine === null) return { code: 'engine_error', message: 'the configuration has no such routine', details: {} };
  const violation = facts.inputViolation;
  if (violation === null) return null;
  const { path, schemaPath, keyword, message } = violation;
  return { code: 'input_validation_failed', message: `the input ${message}`, details: { path, schema_path: schemaPath, keyword } };
}

/** Errors without details get the trace id or the time limit. */
function withDetails(error: RunError, { traceId, timeoutMs }: RunFacts): RunError {
  if (Object.keys(error.details).length > 0) return error;
  return { ...error, details: error.code === 'timeout' ? { timeout_seconds: timeoutMs / 1_000 } : { trace_id: traceId } };
}

function argumentsOf(messages: readonly StepMessage[], toolCallId: string): Record<string, unknown> {
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    const call = message.tool_calls?.find(({ id }) => id === toolCallId);
    if (call !== undefined) return objectIn(call.function.arguments);
  }
  return {};
}

function resultOf(messages: readonly StepMessage[], toolCallId: string): { data: unknown; metadata: Record<string, unknown> } {
  for (const message of messages) {
    if (message.role === 'tool' && message.tool_call_id === toolCallId) return message.result ?? { data: message.content, metadata: {} };
  }
  return { data: null, metadata: {} };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function deadlineKeyOf(runId: string): string {
  return `${runId}-deadline`;
}
