const ESCAPED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** For text between tags and in quoted attributes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPED[character] ?? '');
}

/** A page of HTML that works without scripts and styles. @param body HTML */
export function plainPage(title: string, body: string): string {
  return pageOf(title, `<h1>${escaped(title)}</h1>\n${body}`);
}

/** @param body HTML @param head more of it */
export function pageOf(title: string, body: string, head = ''): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title>${head}</head>
<body>${body}
</body></html>
`;
}

/** No script, style, picture or frame. @param formTarget an origin to which the page's form may lead besides; browsers apply `form-action` to redirects as well */
export function plainPageHeaders(formTarget: string | null = null): Record<string, string> {
  const targets = formTarget === null ? "'self'" : `'self' ${formTarget}`;
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action ${targets}`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // With `no-referrer` browsers would send `Origin: null` with the form.
    'referrer-policy': 'same-origin',
  };
}
