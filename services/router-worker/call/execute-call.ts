import type { RouterCall } from '#bus/messages/router.ts';
import { refuseUnconfigured } from '#shared/config/refuse-unconfigured.ts';
import { refuseUnreadTokens } from '#shared/config/refuse-unread-tokens.ts';
import type { FileAnnotation } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { failureOf, type SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Answer, hasContent } from '#shared/surfaces/answer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { annotationsBehind } from '../pipeline/annotations-behind.ts';
import type { PluginEngines } from '../pipeline/engines.ts';
import { reportIgnored } from '../pipeline/ignored-plugins.ts';
import { type Pipeline, pipelineFor, stagedCall, transformedAnswer } from '../pipeline/pipeline.ts';
import type { FileTools, RouterSearch, Stage, StagedCall } from '../pipeline/stage.ts';
import { reportOnce, withOneSearch } from '../pipeline/staged-again.ts';
import { stages as allStages } from '../pipeline/stages.ts';
import type { PlatformCalls } from '../platform/platform-calls.ts';
import type { Attempted, CallObserver, RunDeps } from './attempt.ts';
import type { Catalogue, Choice } from './candidates.ts';
import { askedOf, choiceOf, type Decided } from './choice.ts';
import { conversationOf } from './conversation.ts';
import { noProvider } from './decision.ts';
import type { CallResult, Ending, Execution } from './execution.ts';
import { admitsOne } from './ordering.ts';
import { responseWriterFor } from './response-writer.ts';
import { RoutingReport } from './routing-report.ts';
import { type CallOutcome, type CallPlan, runCall } from './run-call.ts';
import { stageContextOf } from './stage-context.ts';
import type { StickyEndpoints } from './sticky-endpoints.ts';
import { type Tried, type UnreadCall, untried, withFilesRead } from './unread-files.ts';
import { type AddedUse, type Bill, billOf } from './usage.ts';

/** What readers have of a call whose worker died. */
export interface ShownAnswer {
  /** Null: it is not known any more. */
  answer: Answer | null;
  bill: Bill;
  /** As of an ending. */
  search?: RouterSearch | null;
}

export interface ExecuteDeps extends RunDeps {
  catalogue: Catalogue;
  /** Of plugins; absent: none is configured. */
  engines?: PluginEngines;
  /** Absent: no file can be read. */
  files?: FileTools;
  /** Absent: conversations are not bound to endpoints. */
  sticky?: Pick<StickyEndpoints, 'of' | 'served'>;
  /** Executes the call in place of this worker, with its stages: at another deployment. Absent: it is executed here. */
  elsewhere?: Pick<PlatformCalls, 'run'>;
  /** Absent: those of pipeline/stages.ts. */
  stages?: readonly Stage[];
}

/** `added`: what stages have used; absent: nothing. */
type StagedOutcome = CallOutcome & { added?: AddedUse };

/** Executes one call and publishes its frames up to the terminal one: an error ends the call. @throws only what `ending` rejects with */
export async function executeCall(execution: Execution, deps: ExecuteDeps): Promise<CallResult> {
  const { signal, mayPublish } = execution;
  let last: Attempted | null = null;
  const routing = routingReportOf(execution.call);
  const files: FileAnnotation[] = [];
  const responseWriter = responseWriterFor(execution, routing, (attempt) => {
    last = attempt;
  });
  let outcome: StagedOutcome;
  try {
    signal.throwIfAborted();
    outcome = await run(routing === null ? execution : reporting(execution, routing, deps.catalogue), files, responseWriter.observer, deps);
  } catch (error) {
    report(error, execution.log ?? deps.log);
    outcome = { type: 'failed', error, candidate: null, partial: null, previousErrors: [] };
  }
  if (!mayPublish()) return { type: 'failed', failure: failureOf(signal.reason) };
  const ending = endingOf(outcome, last);
  const recorded = execution.ending?.(ending) ?? null;
  if (recorded !== null) {
    await recorded;
    if (!mayPublish()) return { type: 'failed', failure: failureOf(signal.reason) };
  }
  switch (outcome.type) {
    case 'completed':
      return responseWriter.complete(outcome.candidate, outcome.answer, (ending.bill as Bill).usage);
    case 'failed':
      return responseWriter.fail(outcome.error, { ...outcome, files }, ending.bill);
    case 'aborted':
      return responseWriter.fail(signal.reason, { ...outcome, files }, ending.bill);
  }
}

function run(execution: Execution, files: FileAnnotation[], observer: CallObserver, deps: ExecuteDeps): Promise<StagedOutcome> {
  if (deps.elsewhere === undefined) return runPipeline(execution, files, observer, deps);
  const { call, signal, log = deps.log } = execution;
  return deps.elsewhere.run(call, observer, signal, { ...deps, log });
}

/** Null: the caller does not want to know where it went. */
function routingReportOf({ routerMetadata, request }: RouterCall): RoutingReport | null {
  return routerMetadata === true ? new RoutingReport(request) : null;
}

function reporting(execution: Execution, routing: RoutingReport, { names }: Catalogue): Execution {
  const decided = (choice: Choice) => {
    routing.decided(choice, names);
    execution.decided?.(choice);
  };
  return { ...execution, decided, staged: (entry) => routing.staged(entry) };
}

/** Of a stage; those of attempts are logged there. */
function report(error: unknown, log: Log): void {
  const { code, message } = failureOf(error);
  if (code === 'internal') log.error({ code, err: error }, 'a stage of a router call failed');
  else if (code === 'router.plugin_unavailable') log.warn({ code, reason: message }, 'the engine of a plugin can not be used');
}

function endingOf(outcome: StagedOutcome, last: Attempted | null): Ending {
  const { added } = outcome;
  const searched = added === undefined ? {} : { search: added.search };
  if (outcome.type === 'completed') {
    const { answer, candidate } = outcome;
    return { how: 'completed', answer, bill: billOf(answer, candidate.request, candidate.endpoint, 'completed', added), ...searched };
  }
  if (last === null || !isBilled(last.answer, outcome.type)) return { how: outcome.type, answer: null, bill: null };
  const { answer, candidate } = last;
  return { how: outcome.type, answer, bill: billOf(answer, candidate.request, candidate.endpoint, outcome.type, added), ...searched };
}

/** What a failed attempt without content had counted at its start is of no interest to its caller. */
function isBilled(answer: Answer, end: 'failed' | 'aborted'): boolean {
  return answer.usage !== null || hasContent(answer) || (end === 'aborted' && answer.usageSoFar !== null);
}

const NONE_TRIED: Tried = new Set();

/** What attempts need of the pipeline. `unread`: absent where no other endpoint may get the text of files. */
type Passed = Pick<Pipeline, 'parts'> & { unread?: Pick<UnreadCall, 'asked' | 'restage' | 'restaged' | 'partTransforms'> };

/** A streamed answer is published by its end, so the answer transforms have the others alone. @param files gets what is read @throws, or rejects, as its stages do */
function runPipeline(execution: Execution, files: FileAnnotation[], observer: CallObserver, deps: ExecuteDeps): Promise<StagedOutcome> {
  const { call } = execution;
  const asked = askedOf(call, deps.catalogue);
  if (execution.staged !== undefined) reportIgnored(asked, execution.staged);
  const pipeline = pipelineFor(asked, deps.stages ?? allStages);
  // Most calls have neither stages nor transforms, and need no promise for them.
  if (pipeline.request.length === 0 && pipeline.answer.length === 0) return runStaged({ request: asked }, pipeline, execution, observer, deps);
  return runTransformed(asked, pipeline, files, execution, observer, deps);
}

async function runTransformed(
  asked: ChatRequest,
  pipeline: Pipeline,
  files: FileAnnotation[],
  execution: Execution,
  observer: CallObserver,
  deps: ExecuteDeps,
): Promise<StagedOutcome> {
  const { call, signal, staged } = execution;
  const stage = stagesOf(asked, pipeline, files, execution, deps);
  let ready = await stage();
  // The later stages may exclude all endpoints that take files, as where an endpoint is to search.
  if (ready.hasUnreadFiles && choiceOf(ready, null, call, deps).candidates.length === 0) ready = await stage(ready);
  const { annotations } = ready;
  const parts = annotations.length === 0 ? pipeline.parts : [...pipeline.parts, annotationsBehind(annotations)];
  const restage = (tried: Tried) => stage(ready, tried);
  const restaged = (staged: StagedCall) => {
    ready = staged;
    execution.added?.(addedBy(ready));
  };
  execution.added?.(addedBy(ready));
  const unread = ready.hasUnreadFiles && !admitsOne(asked) ? { unread: { asked, restage, restaged, partTransforms: pipeline.parts } } : {};
  const outcome = await runStaged(ready, { parts, ...unread }, execution, observer, deps);
  const { request } = ready;
  const added = addedBy(ready);
  if (outcome.type !== 'completed' || call.want === 'frames') return { ...outcome, added };
  return { ...outcome, added, answer: await transformedAnswer(pipeline.answer, outcome.answer, { request, signal, report: staged }) };
}

function addedBy({ search, costNano }: StagedCall): AddedUse {
  return { search, costNano };
}

/**
 * Stages a call, also again for the endpoints that it was not tried at: these get the text of its files. What the router has searched for is then not searched
 * for again, and what was reported not reported again.
 */
function stagesOf(
  asked: ChatRequest,
  { request: stages }: Pipeline,
  files: FileAnnotation[],
  execution: Execution,
  deps: ExecuteDeps,
): (before?: StagedCall, tried?: Tried) => Promise<StagedCall> {
  const { call, signal, nowMs, surface, staged } = execution;
  const engines = deps.engines === undefined ? undefined : withOneSearch(deps.engines);
  const report = staged && reportOnce(staged);
  return (before, tried = NONE_TRIED) => {
    const candidatesOf = (request: ChatRequest) => {
      const choice = choiceOf({ request }, null, call, deps);
      return tried.size === 0 ? choice.candidates : untried(choice, tried).candidates;
    };
    const fileRead = (annotation: FileAnnotation) => files.push(annotation);
    const context = stageContextOf({ signal, nowMs, surface, report, candidatesOf, fileRead, before }, { ...deps, engines });
    refuseUnconfigured(asked, context.engines);
    if (call.embedding !== undefined) refuseUnreadTokens(asked, call.embedding);
    return stagedCall(stages, asked, context);
  };
}

/** A call that may be bound to the endpoint of those before it waits for what the cache says; all others are begun at once. @throws as `runDecided` does */
function runStaged(staged: Decided, passed: Passed, execution: Execution, observer: CallObserver, deps: ExecuteDeps): Promise<CallOutcome> {
  const { catalogue, sticky } = deps;
  const conversation = sticky === undefined ? null : conversationOf(execution.call, staged.request, catalogue);
  if (sticky === undefined || conversation === null) return runDecided(staged, null, passed, execution, observer, deps);
  const run = async (stickyTo: string | null) => {
    const outcome = await runDecided(staged, stickyTo, passed, execution, observer, deps);
    if (outcome.type === 'completed') sticky.served(conversation, outcome.candidate, outcome.answer);
    return outcome;
  };
  const stickyTo = sticky.of(conversation);
  return stickyTo instanceof Promise ? stickyTo.then(run) : run(stickyTo);
}

/** @throws `router.no_provider`, and as `candidatesFor` does */
function runDecided(
  staged: Decided,
  stickyTo: string | null,
  { parts, unread }: Passed,
  execution: Execution,
  observer: CallObserver,
  deps: ExecuteDeps,
): Promise<CallOutcome> {
  const choice = choiceOf(staged, stickyTo, execution.call, deps);
  execution.decided?.(choice);
  const { candidates, decision } = choice;
  if (candidates.length === 0) throw noProvider(decision);
  const plan: CallPlan = { candidates, partTransforms: parts, log: execution.log ?? deps.log };
  if (unread !== undefined) plan.more = (remainingOf) => withFilesRead({ ...unread, first: choice, stickyTo }, remainingOf, execution, deps);
  return runCall(plan, observer, execution.signal, deps);
}

/** Ends a call with an error without executing it. @param shown null: readers have nothing of it @throws what `ending` rejects with */
export async function refuseCall(execution: Execution, error: SwitchyardError, shown: ShownAnswer | null): Promise<CallResult> {
  const bill = shown?.bill ?? null;
  const searched = shown?.search === undefined ? {} : { search: shown.search };
  const recorded = execution.ending?.({ how: 'failed', answer: shown?.answer ?? null, bill, ...searched }) ?? null;
  if (recorded !== null) await recorded;
  return responseWriterFor(execution, routingReportOf(execution.call), () => {}).fail(
    error,
    { candidate: null, partial: null, previousErrors: [], files: [] },
    bill,
  );
}
