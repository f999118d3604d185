import type { Annotation } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { located } from './citation-range.ts';
import type { PartTransform } from './stage.ts';

/** States what stages have found behind the text of an answer, once the text is complete. An answer without text has none but those of files. */
export function annotationsBehind(annotations: readonly Annotation[]): PartTransform {
  return () => {
    // Kept for the places of citations, also of a stream; bounded as the answer is.
    let text = '';
    return (parts) =>
      parts.flatMap((part): ProviderPart[] => {
        if (part.type === 'text-delta') text += part.text;
        if (part.type !== 'finish' || part.reason === 'error') return [part];
        return [...annotations.flatMap((annotation) => statedBehind(annotation, text)), part];
      });
  };
}

/** A caller of tools sends its files again with their results. */
function statedBehind(annotation: Annotation, text: string): ProviderPart[] {
  if (annotation.type === 'file') return [{ type: 'annotation', annotation }];
  return text === '' ? [] : [{ type: 'annotation', annotation: located(annotation, text) }];
}
