import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { requestedReasoning } from '../reasoning.ts';
import { EFFORTS, type Effort, type RequestForm } from './request-form.ts';

/** Fields that turn reasoning on and off, as a client would set them. */
const SWITCHES: Record<NonNullable<RequestForm['reasoningSwitch']>, (isOn: boolean) => object> = {
  thinking: (isOn) => ({ type: isOn ? 'enabled' : 'disabled' }),
  /** Variables of models' templates, which have one name or the other. */
  chat_template_kwargs: (isOn) => ({ enable_thinking: isOn, thinking: isOn }),
};

/** Adds what the request says of reasoning to the upstream's body, which keeps what it has. */
export function askForReasoning(
  body: Record<string, unknown>,
  request: ChatRequest,
  { extensions, efforts, reasoningSwitch }: Pick<RequestForm, 'extensions' | 'efforts' | 'reasoningSwitch'>,
): void {
  if (extensions.has('reasoning')) {
    stateAsObject(body, request);
    return;
  }
  const effort = request.reasoning_effort ?? effortOf(request);
  if (effort === null) return;
  if (reasoningSwitch !== null) body[reasoningSwitch] ??= SWITCHES[reasoningSwitch](effort !== 'none');
  if (reasoningSwitch === null || effort !== 'none') body.reasoning_effort ??= efforts === null ? effort : nearestOf(efforts, effort);
}

/** As the object, which overrules the other two forms. */
function stateAsObject(body: Record<string, unknown>, { reasoning, reasoning_effort: effort, include_reasoning: included }: ChatRequest): void {
  if (reasoning === undefined && !effort && included !== true) return;
  // Excluded reasoning is left out of the answer here, and counted.
  const { exclude: _, ...asked } = reasoning ?? {};
  delete body.reasoning_effort;
  body.reasoning = { ...(effort && { effort }), ...asked };
}

/** Null when the request says nothing of it. A token budget becomes the nearest effort. */
function effortOf(request: ChatRequest): Effort | null {
  const requested = requestedReasoning(request, request.max_completion_tokens ?? request.max_tokens ?? null);
  if (requested === null) return null;
  return requested.isOff ? 'none' : requested.effort;
}

/** Of two as near the higher. */
function nearestOf(taken: readonly Effort[], effort: Effort): Effort {
  const distance = (other: Effort) => Math.abs(EFFORTS.indexOf(other) - EFFORTS.indexOf(effort));
  return taken.reduce((nearest, next) => (distance(next) <= distance(nearest) ? next : nearest));
}
