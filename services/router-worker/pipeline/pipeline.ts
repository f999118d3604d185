import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import type { CallSignal } from '../call-signal.ts';
import type { AnswerTransform, PartTransform, PipelineReport, RequestStage, Stage, StageContext, StagedCall } from './stage.ts';

/** What one call passes through, in order. */
export interface Pipeline {
  readonly request: readonly RequestStage[];
  readonly parts: readonly PartTransform[];
  readonly answer: readonly AnswerTransform[];
}

/** Shared, so that a call without stages allocates nothing. */
const direct: Pipeline = { request: [], parts: [], answer: [] };

export function pipelineFor(request: ChatRequest, stages: readonly Stage[]): Pipeline {
  if (!stages.some((stage) => stage.appliesTo(request))) return direct;
  const applied = stages.filter((stage) => stage.appliesTo(request));
  return {
    request: applied.flatMap((stage) => stage.request ?? []),
    parts: applied.flatMap((stage) => stage.parts ?? []),
    answer: applied.flatMap((stage) => stage.answer ?? []),
  };
}

/** @throws what a stage throws */
export async function stagedCall(stages: readonly RequestStage[], request: ChatRequest, context: StageContext): Promise<StagedCall> {
  let staged: StagedCall = { request, annotations: [], fromFiles: new Set(), hasUnreadFiles: false, isSearchNative: false, search: null, costNano: 0 };
  for (const stage of stages) staged = await stage(staged, context);
  return staged;
}

/** One attempt's transform; null when parts go to the surface as they are. */
export function partTransformOf(transforms: readonly PartTransform[], answer: Answer): ((parts: readonly ProviderPart[]) => readonly ProviderPart[]) | null {
  if (transforms.length === 0) return null;
  const begun = transforms.map((transform) => transform(answer));
  return (parts) => begun.reduce((transformed, transform) => transform(transformed), parts);
}

/** @throws what a transform throws */
export async function transformedAnswer(
  transforms: readonly AnswerTransform[],
  answer: Answer,
  { request, signal, report }: { request: ChatRequest; signal: CallSignal; report?: PipelineReport | undefined },
): Promise<Answer> {
  let transformed = answer;
  for (const transform of transforms) transformed = await transform(transformed, request, signal, report);
  return transformed;
}
