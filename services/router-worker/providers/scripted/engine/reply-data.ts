import { type Sentence, sentencesOf } from '../words.ts';
import { linesIn } from './question.ts';

/** Heads of the messages in which the agent's engine gives a reply its data (actors/kinds/turn/steps/compose-reply.ts). The user has not written them. */
const DOCUMENTS = 'Documents were looked up for the reply. ';
const HEADS = [DOCUMENTS, 'Tools were called for the customer. ', 'A tool was called outside of this conversation. '];

export function isReplyData(text: string): boolean {
  return HEADS.some((head) => text.startsWith(head));
}

/** What documents say, the best first; empty for other data. */
export function documentsIn(text: string): Sentence[] {
  if (!text.startsWith(DOCUMENTS)) return [];
  return linesIn(text).flatMap(({ title, content }) =>
    sentencesOf(String(content)).map((sentence) => ({
      ...sentence,
      heading: sentence.heading ?? (typeof title === 'string' ? title : null),
      isDocument: true,
    })),
  );
}

/** Results of tools, as JSON; empty for documents. */
export function resultsIn(text: string): { tool: string; text: string }[] {
  if (text.startsWith(DOCUMENTS)) return [];
  return linesIn(text).map(({ tool, tool_id: injected, result = null }) => ({ tool: String(tool ?? injected), text: JSON.stringify(result) }));
}
