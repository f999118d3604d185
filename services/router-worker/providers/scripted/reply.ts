import type { Conversation } from './conversation.ts';
import { recall, subjectsOf } from './recall.ts';
import { sentencesOf } from './words.ts';

const INTRODUCTION = "I am Switchyard's scripted model: a fixed script, not a language model. I answer from my instructions and from what you tell me.";

const GREETING = /^\W*(hi|hello|hey|hiya|howdy|greetings|good (morning|afternoon|evening|day)|moin|servus|hola|bonjour|hallo)\b/i;
const THANKS = /\b(thanks|thank you|thx|cheers|much appreciated)\b/i;
const FAREWELL = /^\W*(bye|goodbye|good bye|see you|farewell|good night|that('s| is| was) all)\b/i;
const ASKS_IDENTITY =
  /\b(who|what) (are|r) (you|u)\b|\bare you (an? )?(real|human|person|robot|bot|machine|ai|llm|model)\b|\b(which|what) model\b|\byour name\b/i;
const ASKS_ABILITY = /\bwhat (can|could|do) (you|u) (do|help)|\bhow (can|could) (you|u) help\b|^\W*help\W*$/i;
const ASKS_MY_NAME = /\b(what('s| is) my name|who am i|do you (know|remember) (my name|me|who i am))\b/i;
/** "call me later" gives no name, so there a capital letter is required. */
const STATES_NAME = /\b(?:[Mm]y name is|[Mm]y name's|[Ii] am called)\s+(\p{L}[\p{L}'-]*)|\b[Cc]all me\s+(\p{Lu}[\p{L}'-]*)/u;
const ASKS_EARLIER =
  /\bwhat\b.{0,20}\b(?:did i|have i|i)\s+(?:just\s+|first\s+)?(?:ask|asked|say|said|tell|told|write|wrote|mention)|\bmy (?:first|previous|last|earlier) (?:question|message)\b/i;
const ABOUT_FIRST = /\bfirst\b|\bbeginning\b|\bstart\b/i;
/** "my order number is 4711": a fact to recall later. */
const STATES_FACT = /^\W{0,8}(?:note|remember|fyi|for the record)?\W{0,8}(?:that\s+)?my\s+\S.{0,80}?\s(?:is|are|was)\s[^?]+$/i;
const ASKS_FACT = /\b(?:what|which|when|where|who)\b.{0,20}\bmy\b/i;
const AFTER_GREETING =
  /^\W*(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|moin|servus|hola|bonjour|hallo)(?:\s+(?:there|all|everyone|team|you))?[\s,.!]*/i;
const MAX_QUOTE_CHARS = 300;
/** Longer thanks contain another request. */
const MAX_COURTESY_CHARS = 60;
const MAX_PHRASE_DEPTH = 6;

/** Composes the answer to the last message; pure. */
export function composeReply(conversation: Conversation): string {
  const { last } = conversation;
  const greets = GREETING.test(last);
  const question = last.replace(AFTER_GREETING, '').trim();
  const introduces = !conversation.hasAnswered || ASKS_IDENTITY.test(last);
  const name = nameIn(last);
  const parts = [
    greets || name !== null ? `${greets ? 'Hello' : 'Nice to meet you'}${name === null ? '' : `, ${name}`}!` : '',
    introduces ? INTRODUCTION : '',
    question === '' || (name !== null && !question.includes('?')) ? topicsText(conversation) : answer(question, conversation),
  ];
  return parts.filter((part) => part !== '').join(' ');
}

function answer(question: string, conversation: Conversation): string {
  if (ASKS_MY_NAME.test(question)) return myName(conversation);
  if (ASKS_EARLIER.test(question)) return earlierMessage(question, conversation);
  if (ASKS_IDENTITY.test(question) || ASKS_ABILITY.test(question)) return topicsText(conversation);
  if (FAREWELL.test(question)) return 'Goodbye! Come back whenever you like.';
  if (THANKS.test(question) && question.length <= MAX_COURTESY_CHARS && !question.includes('?'))
    return "You're welcome! Is there anything else I can do for you?";
  if (STATES_FACT.test(question)) return 'Thank you, I will remember that for this conversation.';
  const statements = conversation.earlier.flatMap(sentencesOf).filter(({ text }) => !text.endsWith('?'));
  const remembered = recall(question, statements);
  const found =
    remembered.length > 0 && ASKS_FACT.test(question) ? [] : recall(question, [...conversation.documents, ...conversation.instructions.flatMap(sentencesOf)]);
  if (found.length > 0) return `${found[0]?.startsWith('My ') ? '' : opening(question)}${found.map(ended).join(' ')}`;
  if (remembered.length > 0) return `You told me earlier: ${quoted(remembered.join(' '))}`;
  if (!question.includes('?') && !/^\W*(what|when|where|why|who|how|can|could|do|does|is|are|tell|explain|show|give)\b/i.test(question)) {
    return `Thank you, I will keep that in mind for this conversation. ${topicsText(conversation)}`;
  }
  return `I'm sorry, but I know nothing about that. ${topicsText(conversation)}`;
}

/** The topics that the model can be asked about, as a sentence. */
function topicsText({ instructions }: Conversation): string {
  const subjects = subjectsOf(instructions.flatMap(sentencesOf));
  if (subjects.length > 0) return `You can ask me about ${listed(subjects)}.`;
  if (instructions.length > 0) return 'Ask me anything that my instructions cover.';
  return 'I have no instructions. Tell me a fact and ask me about it later, give me tools to call, or make me fail on purpose with "!fail cut after=3".';
}

function myName({ earlier }: Conversation): string {
  const name = earlier.map(nameIn).findLast((name) => name !== null) ?? null;
  return name === null ? "You haven't told me your name yet." : `Your name is ${name}.`;
}

function earlierMessage(question: string, { earlier }: Conversation): string {
  const message = ABOUT_FIRST.test(question) ? earlier.at(0) : earlier.at(-1);
  if (message === undefined) return 'This is the first thing that you have said to me.';
  return `${ABOUT_FIRST.test(question) ? 'The first thing that you said was' : 'The last thing that you said before this was'}: ${quoted(message)}`;
}

function nameIn(message: string): string | null {
  const match = STATES_NAME.exec(message);
  const name = match?.[1] ?? match?.[2] ?? null;
  return name === null ? null : `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

/** Varied by the question's length. */
function opening(question: string): string {
  const openings = ['', 'Happy to help. ', 'Certainly. ', 'Good question. '];
  return openings[question.length % openings.length] ?? '';
}

function ended(sentence: string): string {
  return /[.!?…]["”)]?$/.test(sentence) ? sentence : `${sentence}.`;
}

function quoted(text: string): string {
  return `"${text.length > MAX_QUOTE_CHARS ? `${text.slice(0, MAX_QUOTE_CHARS)}…` : text}"`;
}

function listed(subjects: readonly string[]): string {
  const last = subjects.at(-1) ?? '';
  return subjects.length < 2 ? last : `${subjects.slice(0, -1).join(', ')} and ${last}`;
}

/** Tool results as prose. */
export function reportResults({ results }: Conversation): string {
  return results.map(({ tool, text }) => `${tool} answered: ${inWords(text)}`).join(' ');
}

function inWords(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return ended(text.trim() === '' ? 'nothing' : text.trim());
  }
  return ended(phrase(value));
}

function phrase(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if (depth >= MAX_PHRASE_DEPTH) return '…';
  if (Array.isArray(value)) return value.length === 0 ? 'nothing' : value.map((item) => phrase(item, depth + 1)).join('; ');
  const fields = Object.entries(value).map(([key, field]) => fieldPhrase(key.replaceAll(/[_-]+/g, ' '), field, depth));
  return fields.length === 0 ? 'nothing' : fields.join(', ');
}

function fieldPhrase(name: string, value: unknown, depth: number): string {
  return typeof value === 'object' && value !== null ? `${name} (${phrase(value, depth + 1)})` : `${name} is ${phrase(value)}`;
}
