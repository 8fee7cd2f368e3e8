/**
 * Lets a program of a newer Debian run on glibc 2.34 and later, Debian 12's included.
 *
 * Compilers against glibc 2.38 and later turn strtol and its relatives into __isoc23_strtol…, which only accept "0b" prefixes in addition. Where these
 * are all that a program needs beyond GLIBC_2.34, its symbol names can point at the plain function (it is a suffix of the same string), and the version
 * it asks for at the oldest one. Debian's runc 1.3 is such a program. Sections as in elf(5); little-endian ELF64 only, as amd64 and arm64 are.
 */
const SECTION = { dynamicSymbols: 11, versionNeeds: 0x6ffffffe, versions: 0x6fffffff } as const;
const BASE_VERSION = /^GLIBC_2\.(2\.5|17)$/; // what the first release of amd64 and arm64 had
const NEWER = /^__isoc23_((?:str|wcs)to\w+)$/;
const NEW_VERSION = "GLIBC_2.38";

/** A copy of `program` that needs at most GLIBC_2.34 for these functions, and their names. Throws where another symbol needs the new version. */
export function lowerGlibc(program: Uint8Array): { program: Buffer; changed: string[] } {
  const elf = Buffer.from(program);
  const changed: string[] = [];
  const u64 = (offset: number): number => Number(elf.readBigUInt64LE(offset));
  const sections = Array.from({ length: elf.readUInt16LE(0x3c) }, (_, i) => {
    const at = u64(0x28) + i * elf.readUInt16LE(0x3a);
    return { type: elf.readUInt32LE(at + 4), offset: u64(at + 24), size: u64(at + 32), link: elf.readUInt32LE(at + 40), info: elf.readUInt32LE(at + 44) };
  });
  const [symbols, needs, versions] = [SECTION.dynamicSymbols, SECTION.versionNeeds, SECTION.versions].map((type) => sections.find((section) => section.type === type));
  if (!symbols || !needs || !versions) return { program: elf, changed }; // statically linked
  const name = (section: { link: number }, offset: number): string => {
    const start = sections[section.link]!.offset + offset;
    return elf.toString("latin1", start, elf.indexOf(0, start));
  };

  let base: number | undefined; // a version need of libc that every glibc satisfies
  const tooNew: number[] = [];
  for (let file = 0, at = needs.offset; file < needs.info; file++, at += elf.readUInt32LE(at + 12)) {
    for (let i = 0, aux = at + elf.readUInt32LE(at + 8); i < elf.readUInt16LE(at + 2); i++, aux += elf.readUInt32LE(aux + 12)) {
      const version = name(needs, elf.readUInt32LE(aux + 8));
      if (BASE_VERSION.test(version)) base = aux;
      if (version === NEW_VERSION) tooNew.push(aux);
    }
  }
  for (const aux of tooNew) {
    const index = elf.readUInt16LE(aux + 6);
    for (let i = 0; i * 24 < symbols.size; i++) {
      if (elf.readUInt16LE(versions.offset + 2 * i) !== index) continue;
      const symbol = symbols.offset + 24 * i;
      const wanted = name(symbols, elf.readUInt32LE(symbol));
      const plain = NEWER.exec(wanted)?.[1];
      if (plain === undefined || base === undefined) throw new Error(`needs ${wanted} of ${NEW_VERSION}, for which there is no older equivalent`);
      elf.writeUInt32LE(elf.readUInt32LE(symbol) + wanted.length - plain.length, symbol);
      changed.push(wanted);
    }
    elf.copy(elf, aux, base!, base! + 4); // the hash of the version's name
    elf.copy(elf, aux + 8, base! + 8, base! + 12); // the name
  }
  return { program: elf, changed };
}
