import { deflateSync } from 'node:zlib';

/** PDFs for tests, as text until the end: streams are latin-1. */

/** A file of these objects (the first is number 1, the catalogue), with its table of places. @param trailer more of its trailer */
export function pdfOf(objects: readonly string[], trailer = ''): Buffer {
  let file = '%PDF-1.7\n%\xe2\xe3\xcf\xd3\n';
  const places = objects.map((object, index) => {
    const place = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const table = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('');
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(file, 'latin1');
}

export function streamOf(content: string | Buffer, fields = ''): string {
  const bytes = Buffer.from(content as string, 'latin1');
  return `<< /Length ${bytes.byteLength} ${fields} >>\nstream\n${bytes.toString('latin1')}\nendstream`;
}

export function compressed(content: string | Buffer): string {
  return streamOf(deflateSync(Buffer.from(content as string, 'latin1')), '/Filter /FlateDecode');
}

/** A file with a page for each content; the font is F1. */
export function pagesOf(contents: readonly string[], trailer = '', more: readonly string[] = []): Buffer {
  const FIRST = 4;
  const kids = contents.map((_, index) => `${FIRST + 2 * index} 0 R`).join(' ');
  const pages = contents.flatMap((content, index) => [
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${FIRST + 2 * index + 1} 0 R >>`,
    content,
  ]);
  const catalogue = '<< /Type /Catalog /Pages 2 0 R >>';
  const tree = `<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`;
  return pdfOf([catalogue, tree, '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>', ...pages, ...more], trailer);
}

/** What shows lines of text. Without brackets and backslashes. */
export function showing(lines: readonly string[]): string {
  return `BT /F1 12 Tf 14 TL 72 720 Td ${lines.map((line) => `(${line}) Tj T*`).join('\n')} ET`;
}

/** A page of text for each list of lines. */
export function textPdf(...pages: readonly (readonly string[])[]): Buffer {
  return pagesOf(pages.map((lines) => streamOf(showing(lines))));
}

/** A page with a picture alone. */
export function scannedPdf(): Buffer {
  const picture = streamOf('\x80', '/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8');
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /XObject << /Im1 5 0 R >> >> /Contents 4 0 R >>',
    streamOf('q 612 0 0 792 0 0 cm /Im1 Do Q'),
    picture,
  ]);
}

/** Its password is not known to anything. */
export function encryptedPdf(): Buffer {
  const entry = (fill: string) => `<${fill.repeat(32)}>`;
  const id = `<${'0f'.repeat(16)}>`;
  const encrypt = `<< /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O ${entry('a1')} /U ${entry('b2')} >>`;
  return pagesOf([streamOf(showing(['secret']))], `/Encrypt 6 0 R /ID [${id} ${id}]`, [encrypt]);
}

export function dataUrlOf(file: Buffer): string {
  return `data:application/pdf;base64,${file.toString('base64')}`;
}
