import { nodeBundle, descriptionsPath, buildInfo } from "./assets.ts"; import { Level } from "level"; import { Packr } from "msgpackr"; import { Agent } from "undici";
import { statSync } from "node:fs";
console.log(nodeBundle(), buildInfo(), Bun.file(nodeBundle()!.path).size, descriptionsPath(), Agent.toString().length);
const dir = process.argv[2]!; const db = new Level<string,Buffer>(dir, { valueEncoding: "buffer" }); await db.open(); await db.put("a", Buffer.from("1"), {sync:true} as any); for await (const [k,v] of db.iterator()) console.log(k, String(v)); await db.close();
const p = new Packr({useRecords:true, structures:[]} as any); const o = {a:"hello world",list:Array.from({length:50},(_, i)=>({name:"pod-"+i, ns:"default"}))}; const b = p.pack(o); let t = performance.now(); for (let i=0;i<20000;i++) p.unpack(b); console.log("unpack us", (performance.now()-t)/20);
console.log(process.platform, process.argv0, require("node:fs").readFileSync("/proc/self/maps","utf8").split("\n").filter((l:string)=>/memfd|\.node/.test(l)).map((l:string)=>l.split(/\s+/).slice(5).join(" ")).filter((x:string,i:number,a:string[])=>a.indexOf(x)===i));
