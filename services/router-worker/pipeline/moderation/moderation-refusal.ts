import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** The most that an error quotes of a text (router-api, "Limits"). */
const MAX_QUOTED_CHARS = 100;
const ELLIPSIS = '...';
const HEAD_CHARS = 48;
const TAIL_CHARS = MAX_QUOTED_CHARS - HEAD_CHARS - ELLIPSIS.length;

interface Refused {
  reasons: readonly string[];
  flaggedText: string;
  /** Of what refused it: the plugin's engine, or the provider. */
  providerName: string;
  modelSlug: string;
}

/** A 403 as the contract has it (router-api, "Errors"). */
export function moderationRefusal(message: string, { reasons, flaggedText, providerName, modelSlug }: Refused, cause?: SwitchyardError): SwitchyardError {
  return new SwitchyardError('router.content_policy', message, {
    cause,
    details: { ...cause?.details, reasons, flagged_input: quoted(flaggedText), provider_name: providerName, model_slug: modelSlug },
  });
}

/** Cut in the middle. The buffer replaces halves of surrogate pairs. */
function quoted(text: string): string {
  const cut = text.length <= MAX_QUOTED_CHARS ? text : `${text.slice(0, HEAD_CHARS)}${ELLIPSIS}${text.slice(-TAIL_CHARS)}`;
  return Buffer.from(cut).toString();
}
