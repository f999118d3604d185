import DOMPurify, { type Config } from 'dompurify';
import { Marked } from 'marked';

/** What a text of a model may become. Tags and attributes that load or run something are missing: no picture, style, frame, form or handler. */
const ALLOWED: Config = {
  ALLOWED_TAGS: [
    ...['a', 'b', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'li', 'ol', 'p', 'pre', 's', 'strong'],
    ...['sub', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'],
  ],
  ALLOWED_ATTR: ['href', 'start', 'align'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto|tel):/i,
};

/** A longer text is shown as it is: to parse it would hold up the page. */
const MAX_MARKDOWN_CHARACTERS = 50_000;
/** Deeper nesting of quotes and lists takes the parser quadratic time and more. */
const MAX_NESTED = 40;
const NESTED = new RegExp(`^(?:[ \\t]*(?:>|[-*+]|\\d{1,9}[.)])){${MAX_NESTED}}`, 'm');
/** Runs of openers are what takes the inline parser quadratic time. */
const RUNS = /[*_~`[\]()<!\\]{400}/;

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    // A picture would ask another host: its address is a link.
    image: ({ href, text }) => `<a href="${attribute(href)}">${escaped(text === '' ? href : text)}</a>`,
    // HTML of a model is text.
    html: ({ text }) => escaped(text),
  },
});

const purify = DOMPurify();
purify.addHook('afterSanitizeAttributes', (node) => {
  // They scroll where they are too wide, also by the keyboard.
  if (node.tagName === 'PRE' || node.tagName === 'TABLE') node.setAttribute('tabindex', '0');
  if (node.tagName !== 'A') return;
  node.setAttribute('rel', 'noopener noreferrer');
  node.setAttribute('target', '_blank');
});

/** Markdown as sanitised nodes. Null: the text is to be shown as it is, since it is too long or too deeply nested. */
export function markdownNodes(text: string): DocumentFragment | null {
  if (text.length > MAX_MARKDOWN_CHARACTERS || NESTED.test(text) || RUNS.test(text)) return null;
  return purify.sanitize(marked.parse(text, { async: false }), { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function attribute(text: string): string {
  return escaped(text).replaceAll('"', '&quot;');
}
