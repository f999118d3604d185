import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { annotationsBehind } from '../pipeline/annotations-behind.ts';
import { withoutReadFiles } from '../pipeline/files/file-items.ts';
import type { StagedCall } from '../pipeline/stage.ts';
import type { RunDeps } from './attempt.ts';
import type { Candidate, Catalogue, Choice } from './candidates.ts';
import { choiceOf, type Decided } from './choice.ts';
import type { Execution } from './execution.ts';
import type { MoreToTry } from './run-call.ts';

/** Ids of endpoints. */
export type Tried = ReadonlySet<string>;

/** A call whose PDFs were left to the endpoints that take them. */
export interface UnreadCall {
  /** With its files. */
  asked: ChatRequest;
  first: Choice;
  /** The endpoint that served the conversation last; null: none. */
  stickyTo: string | null;
  /** Runs the stages again, which then read the files, for endpoints that are none of these. @throws what a stage throws */
  restage(tried: Tried): Promise<StagedCall>;
  /** Called with what `restage` gave once that is what is tried. */
  restaged(staged: StagedCall): void;
  /** What the parts of every attempt pass through. */
  partTransforms: MoreToTry['partTransforms'];
}

/**
 * Once the endpoints that take files have failed: those that get the text. Nothing is read when there are none.
 * @param remainingOf leaves out those that would fail alike
 * @returns null: none; the failure stands, also when the files can't be read
 */
export async function withFilesRead(
  { asked, first, stickyTo, restage, restaged, partTransforms }: UnreadCall,
  remainingOf: (candidates: readonly Candidate[]) => readonly Candidate[],
  execution: Execution,
  deps: Pick<RunDeps, 'health' | 'log'> & { catalogue: Catalogue },
): Promise<MoreToTry | null> {
  const tried: Tried = new Set(first.candidates.map(({ id }) => id));
  const choiceFor = (decided: Decided) => untried(choiceOf(decided, stickyTo, execution.call, deps), tried);
  if (remainingOf(choiceFor({ request: withoutReadFiles(asked) }).candidates).length === 0) return null;
  try {
    const staged = await restage(tried);
    const choice = choiceFor(staged);
    const candidates = remainingOf(choice.candidates);
    if (candidates.length === 0) return null;
    restaged(staged);
    execution.decided?.(joined(first, choice));
    return { candidates, partTransforms: [...partTransforms, annotationsBehind(staged.annotations)] };
  } catch (error) {
    if (!execution.signal.aborted)
      (execution.log ?? deps.log).warn({ code: failureOf(error).code }, 'the files of a call could not be read for other endpoints');
    return null;
  }
}

export function untried({ candidates, decision }: Choice, tried: Tried): Choice {
  const excluded = decision.excluded.flatMap((one) => {
    const endpoints = one.endpoints.filter((id) => !tried.has(id));
    return endpoints.length === 0 ? [] : [{ ...one, endpoints }];
  });
  return {
    candidates: candidates.filter(({ id }) => !tried.has(id)),
    decision: { ...decision, candidates: decision.candidates.filter(({ endpoint }) => !tried.has(endpoint)), excluded },
  };
}

/** The first are tried before the others. What put the first candidate there stays. */
function joined(first: Choice, { candidates, decision }: Choice): Choice {
  return {
    candidates: [...first.candidates, ...candidates],
    decision: { ...first.decision, candidates: [...first.decision.candidates, ...decision.candidates], excluded: decision.excluded },
  };
}
