import type { Annotation } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { PartTransform } from './stage.ts';

/** States what stages have found behind the text of an answer, once the text is complete. An answer without text has none. */
export function annotationsBehind(annotations: readonly Annotation[]): PartTransform {
  return () => {
    let hasText = false;
    return (parts) =>
      parts.flatMap((part): ProviderPart[] => {
        hasText ||= part.type === 'text-delta';
        if (part.type !== 'finish' || part.reason === 'error' || !hasText) return [part];
        return [...annotations.map((annotation) => ({ type: 'annotation' as const, annotation })), part];
      });
  };
}
