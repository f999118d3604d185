import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { messagesBeyondText } from '#shared/prompts/deferred-messages.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';
import { supportsParameter } from './parameters.ts';

export type Modality = NonNullable<EndpointConfig['modalities']>[number];

const MODALITY_OF: Readonly<Record<string, Modality>> = { image_url: 'image', input_audio: 'audio', input_video: 'video', video_url: 'video', file: 'file' };
/** Of an endpoint that declares none: what was sent before endpoints declared any. */
const UNDECLARED: ReadonlySet<Modality> = new Set(['image', 'audio', 'file']);

/** Excludes endpoints that take not all of what the request contains, or have not the format that it asks for. */
export function takingContent(request: ChatRequest, all: readonly ModelEndpoint[], exclusions: Exclusions): readonly ModelEndpoint[] {
  const needed = modalitiesIn(request);
  const hasRareFormat = isRareFormat(request);
  if (needed.length === 0 && !hasRareFormat) return all;
  return all.filter(
    (modelEndpoint) =>
      passes(modelEndpoint, takes(modelEndpoint.endpoint, needed), 'modality', exclusions) &&
      passes(modelEndpoint, !hasRareFormat || supportsParameter(modelEndpoint, 'response_format', request), 'response_format', exclusions),
  );
}

function takes({ modalities }: EndpointConfig, needed: readonly Modality[]): boolean {
  return needed.every((modality) => modalities?.includes(modality) ?? UNDECLARED.has(modality));
}

/** Whether files may be sent to it. */
export function takesFiles({ endpoint }: Pick<ModelEndpoint, 'endpoint'>): boolean {
  return takes(endpoint, ['file']);
}

/** Excludes endpoints that are not known to read PDFs: for a request whose PDFs others get as text. */
export function readingPdfs(all: readonly ModelEndpoint[], exclusions: Exclusions): readonly ModelEndpoint[] {
  return all.filter((modelEndpoint) => passes(modelEndpoint, readsPdfs(modelEndpoint), 'modality', exclusions));
}

/** Whether it reads PDFs by itself, as far as it is known. */
export function readsPdfs({ endpoint, provider }: Pick<ModelEndpoint, 'endpoint' | 'provider'>): boolean {
  return endpoint.modalities?.includes('file') ?? provider.readsPdf;
}

/** Beside text, each once. */
export function modalitiesIn(request: ChatRequest): readonly Modality[] {
  let found: Set<Modality> | null = null;
  for (const { content } of messagesBeyondText(request)) {
    if (!Array.isArray(content)) continue;
    for (const { type } of content) {
      const modality = MODALITY_OF[type];
      if (modality === undefined) continue;
      found ??= new Set();
      found.add(modality);
    }
  }
  return found === null ? [] : [...found];
}

/** Formats that an endpoint must declare: without them the answer would have another form. */
function isRareFormat({ response_format: format }: ChatRequest): boolean {
  return format?.type === 'grammar' || format?.type === 'python';
}

/**
 * Refuses what no endpoint of the models can be sent.
 * @param all of the request's models, before any other exclusion
 * @throws `request.invalid` for a format that none of them declares, unless the request requires its parameters, and for a video without an address that one
 *   of them would get
 */
export function refuseUnsendable(request: ChatRequest, all: () => readonly ModelEndpoint[]): void {
  const isRequired = request.provider?.require_parameters === true;
  if (isRareFormat(request) && !isRequired && !all().some((modelEndpoint) => supportsParameter(modelEndpoint, 'response_format', request))) {
    throw invalid('response_format.type', `no endpoint of the model has the format '${request.response_format?.type}'`);
  }
  const video = emptyVideoIn(request);
  if (video !== null && all().some(({ endpoint }) => takes(endpoint, ['video']))) throw invalid(video, 'video_url.url is required to send a video');
}

/** The path of a video without an address; null when there is none. */
function emptyVideoIn(request: ChatRequest): string | null {
  for (const [at, { content }] of messagesBeyondText(request).entries()) {
    if (!Array.isArray(content)) continue;
    const index = content.findIndex((item) => (item.type === 'video_url' || item.type === 'input_video') && item.video_url === undefined);
    if (index >= 0) return `messages[${at}].content[${index}]`;
  }
  return null;
}

function invalid(param: string, message: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param}: ${message}`, { details: { param } });
}
