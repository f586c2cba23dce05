package handoff

// The words of consent. An accepted reply is made of these and of the words of the question only, so a
// language that is not here is never a yes. What denies and what holds off counts in every language at
// once. Accents, case and the doubling of letters do not matter; a homograph of two languages counts in
// each with its own meaning, because a reply is read in one language and English.

// english is understood beside every other language. Set once.
var english = tongueWords{
	yes: `yes, yeah, yea, yep, yup, yessir, aye, sure, sure thing, surely, ok, okay, okey, okie dokie, okey dokey, alright, all right,
		go ahead, go right ahead, go for it, go go go, do it, do that, do so, do this, please do, just do it, run it, run that, run this,
		run the command, run that command, run this command, execute it, execute that, execute the command, start it,
		let it run, let it go ahead, let it do it, let it do that, let it proceed, let it through, all good, all good to go, have at it, fire away, get to it, allow, allow it, allow that, allow this, i allow it, i allow that,
		approve, approved, approve it, approve that, approve this, i approve, i approve it, i approve that, i approve this, its approved, thats approved, approving, consider it approved,
		accept, accepted, accept it, accept that, i accept, i accept it, granted, permission granted, access granted, permitted, authorized, authorised, authorize it, authorise it, i authorize it, i authorise it,
		i authorize that, i authorize this, confirm, confirmed, i confirm, i confirm it, i confirm that, affirmative, proceed, please proceed, you can proceed, you may proceed, feel free, feel free to do it, feel free to run it, feel free to go ahead,
		absolutely, definitely, certainly, of course, of course you can, of course you may, by all means, for sure, indeed, naturally, totally, positive,
		fine, thats fine, thats ok, thats okay, thats good, thats good with me, thats alright, thats all right, that is fine, that is ok, that is okay, that is good, thats fine with me, thats fine by me,
		thats ok with me, thats okay with me, thats okay by me, its fine, its ok, its okay, its alright, its all right, it is fine, it is ok, it is okay, im fine with that, im fine with it,
		im ok with that, im okay with that, im ok with it, im okay with it, im happy with that, im good with that, im good with it, fine by me, fine with me, ok by me, okay by me, ok with me, okay with me, good with me, good by me, ok for me,
		works for me, that works, that works for me, sounds good, sounds good to me, that sounds good, that sounds good to me, that sounds fine, sounds fine, sounds great, that sounds great, sounds okay, sounds ok, sounds right,
		looks good, looks good to me, that looks good, good to go, youre good to go, lgtm, be my guest, knock yourself out, make it so, make it happen, lets do it, lets do that, lets go, lets go ahead, lets run it, lets go for it, let us do it,
		you can, you may, yes you can, yes you may, you can go ahead, you may go ahead, you can do it, you can do that, you may do it, you may do that, you can run it, you can run that, you may run it, you may run that, you can run the command,
		it can, it may, that can run, it can run, it may run, it can go ahead, it may go ahead, it may proceed, it can proceed, it can do that, it may do that, it can do it, it may do it, it can run it, it may run it, they can, they may, it is allowed, its allowed, thats allowed, you are allowed,
		you have my permission, youve got my permission, you got my permission, you have permission, youve got permission, you have my go ahead, you have the go ahead, you have my approval, you have my ok, you have my okay, you have my blessing, i agree, agreed, i agree to that, i consent, i give permission, i give my permission, i permit it, i permit that,
		hundred percent, a hundred percent, one hundred percent, 100 percent, i say yes, my answer is yes, the answer is yes, thats a yes, its a yes, that would be great, that would be good, that would be fine, that would be nice, id like that, i would like that, i want that, green light, you have the green light, thumbs up`,
	fill: `please, just, then, now`,
	hum:  `um, uhm, umm, uh, uhh, er, err, erm, ah, ahh, eh, hm, hmm, mm, like, i mean`,
	lead: `well, so, oh, right, great, perfect, good, very good, cool, nice, excellent, correct, exactly, mm hmm, mm hm, mhm, mhmm, uh huh, hey, hi, hello, thanks, thank you, thats right, thats correct, oh well, why yes, sorry, roger, roger that, copy that, i looked at it, i looked at the diff, i just looked at the diff, i just looked at it, i just looked, i looked, i checked, i checked it, i just checked, i just checked it, i reviewed it, i have read it, ive read it, ive checked, ive checked it, ive seen it, ive looked at it, its just, thats just, is just, theyre just, are just, output, artifacts, generated, generated files, temporary files, leftovers`,
	link: `the, to, with, on, in, at, of, and, let, can, may`,
	tail: `it, that, this, them, him, her, there, over there, right now, right away, straight away, immediately, as well, thanks, thank you, thanks a lot, many thanks, thank you very much, thank you so much, thanks very much, thanks so much, cheers,
		the command, that command, this command, that one, this one, the change, the changes, that change, those changes, these changes, the edit, the edits, go on, continue, carry on, keep going, run, execute, start,
		once, just once, this once, just this once, only this once, only once, one time, just one time, this time, just this time, this one time, only this one time, just for this time, for now,
		its right, im sure, i am sure, i do, it is, i want it, im certain, its good, is fine, are fine, is ok, are ok, is okay, are okay, is good, are good, let it, let them, let him, thats what i want, thats what i wanted, thats what i asked for, that is correct, thats right, thats correct, perfect, good, fine, my friend, mate, sir, maam, madam, man, dude, buddy, pal, folks, guys, thanks for asking, thank you for asking, let me know, let me know how it went, let me know how it goes, let me know when its done, tell me how it went, tell me how it goes, tell me when its done, keep me posted, for me, with me, by me,
		and go ahead, and do it, and run it, and proceed, and thanks, and thank you`,
}.book()

// tongues are the languages that are understood beside English, which stands for itself. Set once.
var tongues = []phrasebook{english, german, french, spanish, italian, portuguese, dutch, polish, turkish, swedish, russian, arabic, hindi, japanese, chinese, korean}

var german = tongueWords{
	yes: `ja, jawohl, jo, jep, jap, jupp, jawoll, klar, na klar, ja klar, aber klar, aber ja, aber sicher, klar doch, alles klar, sicher, na sicher, natürlich, aber natürlich, selbstverständlich, gerne, gern, sehr gerne, aber gerne, in ordnung, geht in ordnung, geht klar, einverstanden, genehmigt, erlaubt,
		freigegeben, bestätigt, zugestimmt, passt, das passt, passt so, mach das, mach es, machs, mach mal, mach ruhig, mach, machen sie das, machen sie es, machen sie, machen wir, mach das bitte, führ es aus, führe es aus, führ das aus, führe das aus, führ den befehl aus, führe den befehl aus, ausführen, führen sie es aus, lass es laufen, lass ihn laufen, lass laufen,
		leg los, los, los gehts, nur zu, tu es, tu das, starte es, starte das, starten, ich stimme zu, ich bin einverstanden, ich bin dafür, ich erlaube es, ich erlaube das, ich genehmige es, ich genehmige das, genehmigen, erlauben, zulassen, ich bestätige, bestätigen, das ist ok, das ist okay, das ist in ordnung, das ist gut, ist ok, ist okay, ist in ordnung, ist gut, okay für mich,
		kannst du machen, das kannst du machen, kannst du, du kannst, das kannst du, können sie machen, darfst du, du darfst, das darfst du, es darf, das darf es, darf es, er darf, das darf er, darf er, von mir aus, meinetwegen, auf jeden fall, unbedingt, absolut, definitiv, gut mach das, na gut, so machen wir das, so machen wir es, du hast meine erlaubnis, meine erlaubnis hast du`,
	fill: `bitte, bitte schön, mal, doch, ruhig, dann, jetzt, einfach`,
	hum:  `ähm, äh, hm, ehm, öh, ach`,
	lead: `also, na, nun, tja, oh, gut, sehr gut, genau, richtig, stimmt, super, prima, perfekt, danke, hallo, so`,
	link: `den, dem, der, auf, auf dem, auf der, im`,
	tail: `das, es, den befehl, das kommando, diesen befehl, danke, dankeschön, danke schön, danke dir, danke sehr, vielen dank, weiter, weitermachen, mach weiter, sofort, diesmal, dieses mal, nur diesmal, nur dieses mal, nur dieses eine mal, dieses eine mal, einmal, nur einmal, gut, stimmt, genau, bin ich, machen, laufen lassen, perfekt`,
}.book()

var french = tongueWords{
	yes: `oui, ouais, ouaip, ouep, oui oui, mais oui, mais bien sûr, d'accord, dac, d'acc, bien sûr, bien sûr que oui, bien entendu, vas y, allez y, vasy, allons y, on y va, c'est parti, fais le, faites le, fais ça, fais cela, faites ça, exécute le, exécute la, exécute ça, exécute la commande, exécutez le, exécutez la commande,
		lance le, lance la, lance ça, lance la commande, lancez le, lancez la commande, lance, lancez, c'est bon, c'est ok, c'est d'accord, c'est bon pour moi, c'est ok pour moi, ok pour moi, ça marche, ça roule, ça me va, ça me convient, entendu, très bien, absolument, tout à fait, certainement, évidemment, volontiers, avec plaisir,
		je suis d'accord, je suis pour, j'accepte, j'approuve, j'autorise, je l'autorise, je valide, je confirme, validé, approuvé, autorisé, accepté, accordé, autorise, autorise le, approuve, approuve le, accepte, valide, confirme, confirmé, permission accordée, autorisation accordée, tu peux, vous pouvez, tu peux y aller, vous pouvez y aller, tu peux le faire,
		vous pouvez le faire, tu peux le lancer, tu peux lancer, tu peux l'exécuter, il peut, elle peut, affirmatif, carrément, feu vert, tu as mon accord, vous avez mon accord, procède, procédez, je te laisse faire, laisse le faire, laisse faire, laisse tourner`,
	fill: `s'il te plaît, s'il vous plaît, stp, svp, donc, maintenant, alors`,
	hum:  `euh, heu, hum, hm, ben, bah`,
	lead: `eh bien, bon, bien, bon alors, ben oui, alors, ah, oh, parfait, super, exact, exactement, merci, bonjour, écoute`,
	link: `le, la, les, sur, sur le, sur la`,
	tail: `merci, merci beaucoup, merci bien, ça, cela, la commande, cette commande, cette fois, une fois, juste une fois, juste cette fois, pour cette fois, une seule fois, seulement cette fois, continue, continuez, tout de suite, parfait, bien, aller, faire`,
}.book()

var spanish = tongueWords{
	yes: `sí, si si, claro, claro que sí, pues claro, por supuesto, por supuesto que sí, vale, de acuerdo, adelante, dale, hazlo, haz eso, hágalo, ejecútalo, ejecútala, ejecuta, ejecute, ejecútelo, ejecuta el comando, ejecuta eso, córrelo, lánzalo, procede, proceda, puedes, puede, puedes hacerlo, puede hacerlo, lo puedes hacer, puedes ejecutarlo, puede ejecutarlo, puedes seguir,
		puedes proceder, está bien, está bien por mí, me parece bien, por mí bien, por mí está bien, por mí vale, aprobado, aprobada, autorizado, lo apruebo, apruebo, apruébalo, lo autorizo, autorizo, autorízalo, permitido, permítelo, lo permito, acepto, aceptado, desde luego, estoy de acuerdo, afirmativo, confirmo, confirmado, seguro, 
		concedido, permiso concedido, tienes permiso, tienes mi permiso, tienes mi aprobación, luz verde, que lo haga, que siga, órale, venga dale, conforme, okey`,
	fill: `por favor, porfa, pues, entonces, ahora, ya`,
	hum:  `eh, em, ehm, este, mm`,
	lead: `bueno, bien, perfecto, genial, venga, correcto, exacto, ah, oh, a ver, gracias, hola, muy bien`,
	link: `lo, el, la, en, en el, en la`,
	tail: `gracias, muchas gracias, eso, el comando, ese comando, este comando, esta vez, una vez, sólo una vez, sólo esta vez, sólo por esta vez, por esta vez, sigue, siga, continúa, continúe, perfecto, hombre, señor, bien, ahora mismo, quiero, puedes, que sí`,
}.book()

var italian = tongueWords{
	yes: `sì, si si, certo, certo che sì, ma certo, certamente, va bene, va benissimo, d'accordo, procedi, procedi pure, proceda, proceda pure, vai, vai pure, vai avanti, avanti, fallo, fai pure, fallo pure, lo faccia, faccia pure, eseguilo, eseguila, esegui, esegui pure, esegui il comando, lancialo, lancia, puoi, puoi farlo, puoi procedere, puoi eseguirlo, può farlo, può procedere, può,
		approvato, approvo, lo approvo, autorizzo, lo autorizzo, autorizzato, consentito, lo consento, permesso accordato, permesso concesso, hai il permesso, hai il mio permesso, accetto, accettato, confermo, confermato, assolutamente sì, naturalmente, volentieri, sono d'accordo, per me va bene, mi va bene, per me ok, ok per me, affermativo, ovviamente, senz'altro, okay`,
	fill: `per favore, per piacere, per cortesia, pure, adesso, ora`,
	hum:  `ehm, eh, uhm, mm`,
	lead: `beh, bene, allora, dunque, perfetto, ottimo, giusto, esatto, ah, oh, ecco, grazie, ciao, benissimo`,
	link: `su, sul, sulla, lo, il, la`,
	tail: `grazie, grazie mille, tante grazie, quello, questo, il comando, quel comando, questo comando, questa volta, solo questa volta, per questa volta, una volta, solo una volta, una volta sola, perfetto, continua, prosegui, assolutamente, subito`,
}.book()

var portuguese = tongueWords{
	yes: `sim, sim sim, claro, claro que sim, com certeza, pode, pode sim, pode ser, pode fazer, pode executar, pode ir, pode rodar, pode prosseguir, pode seguir, pode continuar, pode avançar, podes, podes fazer, podes avançar, podes executar, está bem, está bom, tá bem, tá bom, tá certo, está certo, beleza, vai em frente, vá em frente, vai lá, vamos lá, vamos, faz, faça, faça isso, faz isso, faça-o,
		executa, execute, executa isso, execute isso, executa o comando, execute o comando, rode, roda, rode isso, roda isso, prossiga, prossegue, avança, avance, siga em frente, siga, autorizado, autorizo, eu autorizo, aprovado, aprovo, eu aprovo, permitido, eu permito, permissão concedida, tem permissão, tem minha permissão, aceito, aceite, de acordo, concordo, estou de acordo, eu concordo,
		confirmo, confirmado, manda ver, manda bala, por mim tudo bem, por mim sim, positivo, afirmativo, fechado, combinado, evidentemente, naturalmente, dou permissão, okay`,
	fill: `por favor, se faz favor, agora, aí, lá`,
	hum:  `eh, ah, hum, hm, é`,
	lead: `bem, bom, então, certo, perfeito, ótimo, tudo bem, isso, isso mesmo, oh, olha, olá, obrigado, obrigada`,
	link: `em, na, o, a`,
	tail: `obrigado, obrigada, muito obrigado, muito obrigada, valeu, isso, o comando, esse comando, este comando, desta vez, dessa vez, só desta vez, só dessa vez, uma vez, só uma vez, apenas desta vez, apenas uma vez, perfeito, continua, continue, já`,
}.book()

var dutch = tongueWords{
	yes: `ja, jazeker, zeker, ja zeker, zeker weten, ja hoor, jawel, jep, tuurlijk, natuurlijk, ja natuurlijk, prima, akkoord, is goed, dat is goed, oké, dat is oké, is oké, doe maar, doe het, doe dat, doe het maar, doe dat maar, ga je gang, ga uw gang, ga maar, ga maar door, ga ervoor, graag, heel graag, ja graag, voer het uit, voer dat uit, voer maar uit, voer uit, voer het maar uit, voer het commando uit,
		toegestaan, goedgekeurd, bevestigd, dat mag, het mag, je mag, u mag, mag wel, dat mag wel, dat mag je, hij mag, ik ga akkoord, ik ben akkoord, ik ben het ermee eens, mee eens, ik keur het goed, ik keur dat goed, ik sta het toe, ik bevestig, vooruit, uitvoeren, absoluut, uiteraard, vind ik goed, vind ik prima, prima hoor, start maar, je kunt, dat kan, kan wel, je hebt toestemming, toestemming verleend, laat maar lopen, laat maar draaien, wat mij betreft wel`,
	fill: `alsjeblieft, alstublieft, dan, nu, even, gewoon`,
	hum:  `eh, uh, ehm, uhm, hm`,
	lead: `nou, tja, oh, goed, mooi, perfect, precies, klopt, juist, bedankt, hallo, ach`,
	link: `op, op de, op het, de`,
	tail: `dank je, dank u, dankjewel, dankuwel, dank je wel, dank u wel, bedankt, hartelijk dank, hoor, het, dat, dit, het commando, die opdracht, dat commando, deze keer, één keer, alleen deze keer, eenmalig, ga door, meteen, graag, perfect, goed, prima`,
}.book()

var polish = tongueWords{
	yes: `tak, tak tak, jasne, jasne że tak, oczywiście, oczywiście że tak, dobrze, dobra, okej, zgoda, zgadzam się, pewnie, pewnie że tak, zrób to, rób to, rób, zrób, uruchom, uruchom to, uruchom polecenie, wykonaj, wykonaj to, wykonaj polecenie, odpal, odpal to, puść to, dawaj, śmiało, proszę bardzo, możesz, możesz to zrobić, możesz uruchomić, możesz wykonać, może, można, akceptuję, zatwierdzam, zatwierdź, zatwierdzone,
		zezwalam, pozwalam, potwierdzam, potwierdzone, wyrażam zgodę, masz zgodę, masz moją zgodę, masz pozwolenie, naturalnie, jak najbardziej, w porządku, niech działa, niech to zrobi, niech uruchomi, jedziemy, leć, ruszaj, kontynuuj proszę, jestem za, ok`,
	fill: `proszę, proszę cię, teraz, już, to`,
	hum:  `hm, yyy, y, eee, ee, ym, mm`,
	lead: `więc, świetnie, super, doskonale, dokładnie, słusznie, ach, oh, o, cześć, dzięki`,
	link: `na, ten`,
	tail: `dziękuję, dzięki, bardzo dziękuję, dziękuję bardzo, to, polecenie, to polecenie, tę komendę, tym razem, tylko tym razem, ten raz, tylko ten raz, raz, tylko raz, jeden raz, kontynuuj, dalej, od razu, działaj, bardzo`,
}.book()

var turkish = tongueWords{
	yes: `evet, tamam, olur, tabii, tabii ki, tabi, tabi ki, elbette, elbet, peki, onaylıyorum, onay, onayla, onaylandı, onay veriyorum, izin veriyorum, izin var, izin verildi, izin ver, kabul, kabul ediyorum, kabul edildi, yap, yapabilirsin, yapabilir, yapsın, yap bunu, yap onu, bunu yap, onu yap, yapın, çalıştır, çalıştırabilirsin, çalıştırabilir, çalıştırsın, çalıştırın, bunu çalıştır, onu çalıştır, komutu çalıştır,
		devam et, devam edebilirsin, devam edin, devam, buyur, buyurun, uygun, uygundur, bana uyar, hadi, haydi, başlat, başla, başlayabilirsin, kesinlikle, aynen, okey, memnuniyetle, hallet`,
	fill: `lütfen, şimdi, o zaman, artık`,
	hum:  `şey, eee, ee, ıı, hm, ya`,
	lead: `güzel, harika, doğru, iyi, ha, ah, oh, yani, süper, teşekkürler, merhaba`,
	tail: `teşekkürler, teşekkür ederim, çok teşekkürler, sağ ol, sağol, sağ olun, bunu, onu, komutu, bu komutu, bu sefer, bu seferlik, sadece bu sefer, sadece bu seferlik, bir kere, bir kez, bir defa, sadece bir kere, sadece bir kez, hemen, üzerinde, efendim, doğru, iyi`,
}.book()

var swedish = tongueWords{
	yes: `ja, jo, japp, jajamän, jajamensan, jadå, joda, ja då, jodå, javisst, ja visst, visst, absolut, okej, ok, kör, kör på, kör det, kör den, kör kommandot, kör igång, kör hårt, kör bara, gör det, gör så, godkänt, godkänn, godkänner, jag godkänner, jag godkänner det, jag tillåter det, tillåt, tillåt det, tillåtet, beviljas, det går bra, går bra, det är okej, det är ok, det är bra, det är lugnt, det funkar, gärna, ja gärna, självklart,
		naturligtvis, givetvis, du får, den får, du får göra det, du kan, du kan göra det, du kan köra, så klart, såklart, javars, varsågod, vi kör, då kör vi, sätt igång, jag håller med, jag bekräftar, bekräftar, bekräftat, det stämmer kör, fortsätt gärna, okej för mig, låt den köra`,
	fill: `snälla, nu, då, bara`,
	hum:  `eh, öh, hm, äh, ehm`,
	lead: `bra, precis, mm, toppen, perfekt, jaha, oh, åh, tja, alltså, hej, tack, det stämmer, rätt`,
	link: `på`,
	tail: `tack, tack så mycket, tackar, tusen tack, det, den, kommandot, det kommandot, denna gång, den här gången, bara den här gången, bara denna gång, en gång, bara en gång, fortsätt, direkt, med en gång, du, perfekt, bra`,
}.book()
